import { type FormEvent, useState } from 'react'
import { Brand } from '../shared/brand.tsx'

export function Login({ enter }: { enter(token: string): Promise<boolean> }) {
  const [token, setToken] = useState('')
  const [isWrong, setWrong] = useState(false)

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault()
    setWrong(!(await enter(token)))
  }

  return (
    <main className="login">
      <Brand>dashboard</Brand>
      <h1>Who runs this hub?</h1>
      <form onSubmit={(event) => void submit(event)}>
        <label htmlFor="token">Admin token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          value={token}
          onChange={({ target }) => setToken(target.value)}
        />
        <button type="submit" className="main">
          Open
        </button>
      </form>
      <p role="alert">{isWrong && 'That is not the token, or the server does not answer.'}</p>
      <p className="hint">It is the value of REJOIN_ADMIN_TOKEN, and is forgotten when this tab is closed.</p>
    </main>
  )
}
