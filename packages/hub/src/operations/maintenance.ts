import type { IncomingMessage, ServerResponse } from 'node:http'
import { asksForEvents } from '../http/endpoints.ts'
import { rejectReader } from '../http/reject-reader.ts'
import { namedSelectors } from '../http/subscribe.ts'
import { targetOf } from '../http/target.ts'
import type { Hub } from '../hub/hub.ts'
import { clientAddress, type ProxyTrust } from './client-address.ts'
import type { OperationHandler } from './handler.ts'

/** A time in which all readers are rejected, by order of the operator. Publishing goes on; the readers catch up afterwards. */
export interface Maintenance {
  readonly isOn: boolean
  /** For how long rejected readers are told to wait. */
  readonly retryAfterMs: number
  /** Rejects readers from now on, and closes all streams within `withinMs`. */
  begin(options?: MaintenanceTimes): void
  /** Lets readers in again. Streams that are still open stay open. */
  end(): void
  /** Rejects this request if it is a reader's and maintenance is on. Returns whether it did. */
  rejects(request: IncomingMessage, response: ServerResponse): boolean
  /** `rejects` as middleware, mounted before the hub: `app.use(maintenance.handler)`. Other requests go to the next handler. */
  readonly handler: OperationHandler
}

export interface MaintenanceTimes {
  /**
   * For how long readers are told to wait, in milliseconds. Each gets up to a fifth more at random, so that they do not return
   * together.
   * @defaultValue 60000
   */
  retryAfterMs?: number | undefined
  /**
   * The time over which the streams are closed, in milliseconds. Spread closes keep their readers from returning together.
   * @defaultValue 5000
   */
  withinMs?: number | undefined
}

export interface MaintenanceOptions extends ProxyTrust {
  /**
   * Tells whether a request is a reader's. Needed when readers use routes of your own.
   * @defaultValue GET below `/events`, `/stream` and `/poll`
   */
  isReader?: ((request: IncomingMessage) => boolean) | undefined
  /**
   * The source of chance, for tests.
   * @defaultValue Math.random
   */
  random?: (() => number) | undefined
}

export function createMaintenance(hub: Hub, options: MaintenanceOptions = {}): Maintenance {
  const { isReader = asksForEvents, random = Math.random } = options
  let isOn = false
  let retryAfterMs = 0
  let letStay: (() => void) | undefined

  /** The wait of one reader: up to a fifth more at random (§4.11), or all would return at once. */
  const retryMs = () => Math.round(retryAfterMs * (1 + random() / 5))

  function rejects(request: IncomingMessage, response: ServerResponse): boolean {
    if (!isOn || !isReader(request)) return false
    const status = rejectReader(request, response, { reason: 'maintenance', retryMs: retryMs() })
    const { rest, query } = targetOf(request)
    hub.port.rejected({
      ip: clientAddress(request, options),
      userAgent: request.headers['user-agent'] ?? null,
      subject: null,
      channels: namedSelectors(rest, query),
      reason: 'maintenance',
      status,
    })
    return true
  }

  return {
    get isOn() {
      return isOn
    },
    get retryAfterMs() {
      return retryAfterMs
    },
    begin(times = {}) {
      letStay?.()
      isOn = true
      retryAfterMs = times.retryAfterMs ?? 60_000
      letStay = endConnections(hub, { withinMs: times.withinMs ?? 5000, retryMs })
    },
    end() {
      letStay?.()
      isOn = false
    },
    rejects,
    handler(request, response, next) {
      if (!rejects(request, response)) next?.()
    },
  }
}

/** Ends all connections, spread evenly over `withinMs`. Returns a function that stops this: connections still open stay open. */
function endConnections(hub: Hub, { retryMs, withinMs }: { retryMs(): number; withinMs: number }): () => void {
  const names = [...hub.admin.connections()].map(({ connection }) => connection)
  const timers: NodeJS.Timeout[] = []
  for (const [index, name] of names.entries()) {
    const end = () => hub.admin.disconnectHere(name, { reason: 'maintenance', retryMs: retryMs() })
    if (withinMs === 0) end()
    else timers.push(setTimeout(end, (withinMs * index) / names.length).unref())
  }
  return () => {
    for (const timer of timers) clearTimeout(timer)
  }
}
