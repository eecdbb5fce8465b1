/** Calls the admin API, with the token if there is one. */
export interface Admin {
  readonly token: string | undefined
  get<Answer>(path: string): Promise<Answer>
  post(path: string, body: unknown): Promise<void>
}

export function createAdmin(token: string | undefined): Admin {
  const headers: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {}

  async function ask(path: string, init: RequestInit = {}): Promise<unknown> {
    const response = await fetch(path, { ...init, headers }).catch((cause) => {
      throw new Error('The server does not answer. Try again when it is back.', { cause })
    })
    if (response.ok) return response.json()
    const rejection = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined
    throw new Error(rejection?.error?.message ?? `The server answered ${response.status}.`)
  }

  return {
    token,
    get: <Answer>(path: string) => ask(path) as Promise<Answer>,
    post: async (path, body) => {
      await ask(path, { method: 'POST', body: JSON.stringify(body) })
    },
  }
}

// In the session storage, which ends with the tab: a token that can end streams should not stay in the browser.
const key = 'rejoin-admin-token'

export function keptToken(): string | undefined {
  return sessionStorage.getItem(key) ?? undefined
}

export function keepToken(token: string | undefined): void {
  if (token) sessionStorage.setItem(key, token)
  else sessionStorage.removeItem(key)
}

/** Whether this token, or none, opens the admin API here. */
export async function isWelcome(token: string | undefined): Promise<boolean> {
  try {
    await createAdmin(token).get('/admin/maintenance')
    return true
  } catch {
    // Rejected or unreachable: in both cases the operator has to act.
    return false
  }
}
