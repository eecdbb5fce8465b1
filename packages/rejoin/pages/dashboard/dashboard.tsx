import { useEffect, useState } from 'react'
import { type Admin, createAdmin, isWelcome, keepToken, keptToken } from './admin.ts'
import { Login } from './login.tsx'
import { Overview } from './overview.tsx'

/** On the admin port it opens by itself; elsewhere it asks for the token, which it keeps for as long as the tab is open. */
export function Dashboard() {
  const [admin, setAdmin] = useState<Admin | 'asking' | 'refused'>('asking')

  useEffect(() => {
    const token = keptToken()
    void isWelcome(token).then((welcome) => setAdmin(welcome ? createAdmin(token) : 'refused'))
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
    setAdmin('refused')
  }

  if (admin === 'asking') return null
  return admin === 'refused' ? <Login enter={enter} /> : <Overview admin={admin} leave={leave} />
}
