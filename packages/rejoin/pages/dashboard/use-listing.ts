import { useCallback, useEffect, useState } from 'react'
import type { Admin } from './admin.ts'

/** A page of the admin API with the time when it was loaded. It is loaded again every few seconds while the tab is visible. */
export function useListing<Answer>(admin: Admin, path: string): Loaded<Answer> & { reload(): void } {
  const [loaded, setLoaded] = useState<Loaded<Answer>>({ answer: null, at: null })
  const reload = useCallback(() => {
    // On an error the last answer stays. The line above the tables says that the server is away.
    admin.get<Answer>(path).then(
      (answer) => setLoaded({ answer, at: Date.now() }),
      () => undefined,
    )
  }, [admin, path])

  useEffect(() => {
    reload()
    const timer = setInterval(() => !document.hidden && reload(), everyMs)
    return () => clearInterval(timer)
  }, [reload])

  return { ...loaded, reload }
}

interface Loaded<Answer> {
  readonly answer: Answer | null
  readonly at: number | null
}

const everyMs = 3000
