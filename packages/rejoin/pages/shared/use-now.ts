import { useEffect, useState } from 'react'

/** The current time for a countdown, updated every `everyMs` while `isWanted`. */
export function useNow(everyMs: number, isWanted = true): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!isWanted) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [everyMs, isWanted])
  return now
}
