import { type Connection, type Effect, newConnection, step } from '../../src/connection.ts'
import type { Input, Report } from '../../src/connection-input.ts'

/** A started machine in virtual time that begins at 0, with its one timer kept and all its effects noted. */
export function machine({
  cursor = null as string | null,
  maxRetries = Infinity,
  tiers = 1,
  canRefresh = false,
  tickMs = Infinity,
  isAwaited = false,
} = {}) {
  let connection: Connection = newConnection(cursor, 'me')
  let now = 0
  let timerAt = Infinity
  let timersSet = 0
  const effects: Effect[] = []
  const opens: Connection[] = []

  function input(given: Input, generation?: number): void {
    const settings = { retryMs: 500, maxRetryMs: 30_000, maxRetries, tiers, canRefresh, tickMs, isAwaited }
    const moment = { now, random: () => 0.5, ...settings }
    const taken = step(connection, given, moment, generation)
    connection = taken.connection
    for (const effect of taken.effects) {
      effects.push(effect)
      if (effect === 'open') opens.push(connection)
      if (effect !== 'timer') continue
      timerAt = connection.timerAt
      timersSet++
    }
  }
  const tell = (report: Report) => input(report, connection.generation)
  function fire(): void {
    timerAt = Infinity
    input({ type: 'timer' })
  }
  function at(time = now): number {
    while (timerAt <= time) {
      now = timerAt
      fire()
    }
    now = time
    return now
  }

  input({ type: 'connect' })
  effects.length = 0
  return {
    is: () => connection,
    effects,
    opens,
    input,
    /** Reports something about the current connection. */
    tell,
    connected: () => tell({ type: 'answered', status: 200, isStream: true, retryAfterMs: 0 }),
    greet: ({
      id = null,
      ...fields
    }: {
      id?: string | null
      requested?: string | null
      heartbeatMs?: number
      expiresInMs?: number
    } = {}) => tell({ type: 'hello', id, hello: { requested: null, heartbeatMs: 25_000, ...fields } }),
    /** Lets time pass up to a moment, timers included; without one, tells the time. */
    at,
    elapse: (ms: number) => at(now + ms),
    /** Sets the clock without letting time pass. */
    setClock: (time: number) => {
      now = time
    },
    /** Lets the timer fire, whatever the clock says. */
    fire,
    timer: () => timerAt,
    timers: () => timersSet,
  }
}
