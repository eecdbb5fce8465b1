import { useCallback, useEffect, useState } from 'react'
import type { Admin } from './admin.ts'

/** A page of the admin API that is asked for again every few seconds, while somebody can see it. */
export function useListing<Answer>(admin: Admin, path: string): { answer: Answer | null; reload(): void } {
  const [answer, setAnswer] = useState<Answer | null>(null)
  const reload = useCallback(() => {
    // The line above the tables says when the server is away; what is shown stays.
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
