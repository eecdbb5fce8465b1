import type { Off } from '../handler-set.ts'

/**
 * Opens a stream now; or, when one stream has just followed another, as while a user types a part of the URL, once there
 * is a rest. Otherwise each letter would be a connection.
 *
 * In the time of the machine, also in a test with a clock of its own: there, nobody would know how far to turn it.
 *
 * @returns cancels what has not been opened yet; to be called once, and not after `open`
 */
export function openSoon(open: () => void): Off | undefined {
  const now = Date.now()
  abandoned = abandoned.filter((at) => now - at < youngMs)
  if (abandoned.length < burst) {
    open()
    return
  }
  waiting++
  const timer = setTimeout(() => {
    waiting--
    open()
  }, restMs)
  return () => {
    waiting--
    clearTimeout(timer)
  }
}

/** @param openedAt - undefined when it was never opened */
export function noteClosed(openedAt: number | undefined): void {
  const now = Date.now()
  if (now - (openedAt ?? now) < youngMs) abandoned.push(now)
}

export function forgetClosed(): void {
  abandoned = []
}

/** Whether a stream waits to be opened. */
export function isOpeningDue(): boolean {
  return waiting > 0
}

/** When streams were closed that were younger than `youngMs`, within the last `youngMs`. */
let abandoned: number[] = []
/** How many streams wait to be opened. */
let waiting = 0
const youngMs = 1000
/** So many streams may follow each other without a rest. */
const burst = 3
const restMs = 300
