import type { Clock } from './clock.ts'
import { callHandler, type Handler } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

/** Notes each reconnect of a stream, and sends the notes together once there is a connection again. */
export function reportReconnects(
  onState: (handler: Handler<StreamState>) => unknown,
  address: URL,
  reports: ReconnectReports,
  clock: Clock,
): void {
  const send = typeof reports === 'function' ? reports : (records: ReconnectRecord[]) => post(reports, records)
  let records: ReconnectRecord[] = []
  let sentAt = -Infinity
  let notedAt: number | null = null
  let timer: unknown
  onState(note)

  function note(is: StreamState): void {
    const { state, attempt, nextRetryAt } = is
    const now = clock.now()
    // The same wait shows again when only the count of attempts starts anew.
    if (nextRetryAt !== null && nextRetryAt !== notedAt) {
      records.push({
        event: 'sse_reconnect',
        attempt,
        delay_ms: nextRetryAt - now,
        // Without its query, where some keep their tokens.
        url: address.origin + address.pathname,
        timestamp: new Date(now).toISOString(),
      })
      records = records.slice(-maxRecords)
    }
    notedAt = nextRetryAt
    clock.clearTimeout(timer)
    if (records.length === 0 || (state !== 'closed' && state !== 'connected')) return
    // No longer than that, should the clock have been put back.
    const waitMs = Math.min(sentAt + everyMs - now, everyMs)
    if (state === 'connected' && waitMs > 0) {
      // Should nothing happen until then, nobody else would send them.
      timer = clock.setTimeout(() => note(is), waitMs)
      return
    }
    sentAt = now
    void callHandler(send, records)
    records = []
  }
}

/** A URL to POST to, or a function that is called in its place. */
export type ReconnectReports = string | URL | ((records: ReconnectRecord[]) => unknown)

export interface ReconnectRecord {
  readonly event: 'sse_reconnect'
  readonly attempt: number
  readonly delay_ms: number
  /** Of the stream, without its query. */
  readonly url: string
  /** When the connection was lost, ISO 8601. */
  readonly timestamp: string
}

/** `keepalive` lets it arrive when the page is left right after. */
function post(url: string | URL, records: ReconnectRecord[]): void {
  const body = JSON.stringify(records)
  const headers = { 'Content-Type': 'application/json' }
  fetch(url, { method: 'POST', body, headers, keepalive: true }).catch(() => {
    // A note about a bad connection that was lost to one: there is nobody to tell, and trying again would add to it.
  })
}

/** The oldest go first: what a long outage looked like shows in its end. */
const maxRecords = 100

const everyMs = 30_000
