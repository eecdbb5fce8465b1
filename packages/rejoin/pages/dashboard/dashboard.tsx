import { useEffect, useState } from 'react'
import { type Admin, createAdmin, isWelcome, keepToken, keptToken } from './admin.ts'
import { Login } from './login.tsx'
import { Overview } from './overview.tsx'

/** On an admin port without a token the dashboard opens at once. Elsewhere it asks for the token, and keeps it for the tab. */
export function Dashboard() {
  const [admin, setAdmin] = useState<Admin | 'asking' | 'rejected'>('asking')

  useEffect(() => {
    const token = keptToken()
    void isWelcome(token).then((welcome) => setAdmin(welcome ? createAdmin(token) : 'rejected'))
  }, [])

  async function enter(token: string): Promise<boolean> {
    const welcome = await isWelcome(token)
    if (welcome) {
      keepToken(token)
      setAdmin(createAdmin(token))
    }
    return welcome
  }

  function leave(): void {
    keepToken(undefined)
    setAdmin('rejected')
  }

  if (admin === 'asking') return null
  return admin === 'rejected' ? <Login enter={enter} /> : <Overview admin={admin} leave={leave} />
}
