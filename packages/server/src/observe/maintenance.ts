import { doorOf, readerDoors } from '../doors.ts'
import type { Middleware } from '../middleware.ts'
import { turnAway } from '../turn-away.ts'

/** A while in which readers are turned away, because an operator said so. Publishing goes on: they miss nothing by it. */
export interface Maintenance {
  readonly isOn: boolean
  readonly retryAfterMs: number
  /** What to tell one reader: up to a fifth on top at random, as everywhere (§4.11), or all would be back at once. */
  retryMs(): number
  begin(retryAfterMs: number): void
  end(): void
  /** Turns readers away while it is on. */
  readonly middleware: Middleware
}

/** @param onReject - told for each reader that is turned away */
export function createMaintenance(onReject: () => void, random: () => number = Math.random): Maintenance {
  let isOn = false
  let retryAfterMs = 0

  const retryMs = () => Math.round(retryAfterMs * (1 + random() / 5))

  return {
    get isOn() {
      return isOn
    },
    get retryAfterMs() {
      return retryAfterMs
    },
    retryMs,
    begin(ms) {
      isOn = true
      retryAfterMs = ms
    },
    end() {
      isOn = false
    },
    middleware(request, response) {
      const door = isOn && request.method === 'GET' ? doorOf(request) : ''
      if (!readerDoors.has(door)) return false
      onReject()
      turnAway(request, response, {
        ...{ reason: 'maintenance', retryMs: retryMs() },
        message: 'This hub is being worked on. Retry-After says when to return.',
      })
      return true
    },
  }
}
