import { type Formula, maxTimerMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import { type Handler, report } from './handler-set.ts'
import type { ConnectOptions } from './options.ts'
import { persistCursor } from './persistence.ts'
import type { Policy } from './stream.ts'
import type { StreamState } from './stream-state.ts'

/**
 * Prepares what the options ask for before the first connection.
 *
 * @returns the stored cursor, as `persistCursor` returns it
 */
export async function prepare(
  options: ConnectOptions,
  policy: Policy,
  address: URL,
  show: () => StreamState,
  onState: (handler: Handler<StreamState>) => unknown,
  subscribe: (listener: () => void) => unknown,
  on: (kind: string, handler: Handler<never>) => unknown,
  clock: Clock,
): Promise<string | null | undefined> {
  const { backoff, identity, persist, reports, schemas } = options
  if (schemas) policy.check = (await import('./schema-check.ts')).createCheck(schemas)
  if (typeof backoff === 'function') policy.formula = withinLimits(backoff)
  if (reports) (await import('./reconnect-reports.ts')).reportReconnects(onState, address, reports, clock)
  if (options.shareAcrossTabs) policy.share = (await import('./transports/shared.ts')).createSharing(options, address)
  // No URL has a space, so no two pairs of identity and URL share a key.
  const key = `rejoin:${identity ? `${identity} ` : ''}${address}`
  return persist && persistCursor(persist, key, show, subscribe, on, clock)
}

/** A user's formula, within what the server and the limit allow. */
export function withinLimits(formula: Formula): Formula {
  return (wait) => {
    let asked = 0
    try {
      asked = formula(wait) || 0
    } catch (error) {
      // The wait is then the floor: an exception that got through would end all retries.
      report(error)
    }
    return Math.min(Math.max(asked, wait.floorMs), Math.max(wait.maxMs, wait.floorMs), maxTimerMs)
  }
}
