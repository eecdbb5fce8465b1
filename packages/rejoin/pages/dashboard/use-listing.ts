import { useCallback, useEffect, useState } from 'react'
import type { Admin } from './admin.ts'

/** A page of the admin API, loaded again every few seconds while the tab is visible. */
export function useListing<Answer>(admin: Admin, path: string): { answer: Answer | null; reload(): void } {
  const [answer, setAnswer] = useState<Answer | null>(null)
  const reload = useCallback(() => {
    // On an error the last answer stays. The line above the tables says that the server is away.
    admin.get<Answer>(path).then(setAnswer, () => undefined)
  }, [admin, path])

  useEffect(() => {
    reload()
    const timer = setInterval(() => !document.hidden && reload(), everyMs)
    return () => clearInterval(timer)
  }, [reload])

  return { answer, reload }
}

const everyMs = 3000
