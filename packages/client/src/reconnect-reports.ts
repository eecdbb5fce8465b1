import type { Clock } from './clock.ts'
import { callHandler, type Handler } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

/** Records each reconnect of a stream, and sends the records together once there is a connection again. */
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
    // A change of `attempt` alone shows the same wait again.
    if (nextRetryAt !== null && nextRetryAt !== notedAt) {
      records.push({
        event: 'sse_reconnect',
        attempt,
        delay_ms: nextRetryAt - now,
        // Without the query, which may hold a token.
        url: address.origin + address.pathname,
        timestamp: new Date(now).toISOString(),
      })
      records = records.slice(-maxRecords)
    }
    notedAt = nextRetryAt
    clock.clearTimeout(timer)
    if (records.length === 0 || (state !== 'closed' && state !== 'connected')) return
    // The upper bound is for a clock that has been put back.
    const waitMs = Math.min(sentAt + everyMs - now, everyMs)
    if (state === 'connected' && waitMs > 0) {
      // Sends the records even when the state does not change again.
      timer = clock.setTimeout(() => note(is), waitMs)
      return
    }
    sentAt = now
    void callHandler(send, records)
    records = []
  }
}

/** A URL to POST to, or a function that gets the records instead. */
export type ReconnectReports = string | URL | ((records: ReconnectRecord[]) => unknown)

export interface ReconnectRecord {
  readonly event: 'sse_reconnect'
  readonly attempt: number
  readonly delay_ms: number
  /** The URL of the stream, without its query. */
  readonly url: string
  /** When the connection was lost, ISO 8601. */
  readonly timestamp: string
}

/** With `keepalive`, the request arrives even when the page is left right after it. */
function post(url: string | URL, records: ReconnectRecord[]): void {
  const body = JSON.stringify(records)
  const headers = { 'Content-Type': 'application/json' }
  fetch(url, { method: 'POST', body, headers, keepalive: true }).catch(() => {
    // A report about a bad connection was itself lost. Nobody could be told, and a retry would make matters worse.
  })
}

/** The oldest records are dropped first: the end of a long outage shows best what it was like. */
const maxRecords = 100

const everyMs = 30_000
