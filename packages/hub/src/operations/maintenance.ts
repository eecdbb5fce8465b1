import type { IncomingMessage, ServerResponse } from 'node:http'
import { isReaderEndpoint } from '../http/endpoints.ts'
import { rejectReader } from '../http/reject-reader.ts'
import { targetOf } from '../http/target.ts'
import type { Hub } from '../hub/hub.ts'
import { clientAddress, type ProxyTrust } from './client-address.ts'
import type { OperationHandler } from './handler.ts'

/** A time in which readers are rejected because an operator said so. Publishing goes on: the readers miss nothing. */
export interface Maintenance {
  readonly isOn: boolean
  /** When readers are to try again. */
  readonly retryAfterMs: number
  /** Closes all streams, spread over a time, and rejects readers from now on. */
  begin(options?: MaintenanceTimes): void
  /** Lets readers in again. Streams that are still open stay open. */
  end(): void
  /** Rejects a reader while it is on, and says so. */
  rejects(request: IncomingMessage, response: ServerResponse): boolean
  /** The same, to be mounted before the hub: `app.use(maintenance.handler)`. What it does not reject goes on. */
  readonly handler: OperationHandler
}

export interface MaintenanceTimes {
  /**
   * When readers are to try again.
   * @defaultValue 60000
   */
  retryAfterMs?: number
  /**
   * Over how long the ends of the streams are spread, so that their readers do not return together.
   * @defaultValue 5000
   */
  withinMs?: number
}

export interface MaintenanceOptions extends ProxyTrust {
  /**
   * Which requests are those of readers, where they come in at routes of your own.
   * @defaultValue GET below `/events`, `/stream` and `/poll`
   */
  isReader?(request: IncomingMessage): boolean
  /**
   * For tests.
   * @defaultValue Math.random
   */
  random?(): number
}

export function createMaintenance(hub: Hub, options: MaintenanceOptions = {}): Maintenance {
  const { isReader = asksForEvents, random = Math.random } = options
  let isOn = false
  let retryAfterMs = 0
  let letStay: (() => void) | undefined

  /** What to tell one reader: up to a fifth on top at random, as everywhere (§4.11), or all would be back at once. */
  const retryMs = () => Math.round(retryAfterMs * (1 + random() / 5))

  function rejects(request: IncomingMessage, response: ServerResponse): boolean {
    if (!isOn || !isReader(request)) return false
    const status = rejectReader(request, response, { reason: 'maintenance', retryMs: retryMs() })
    const { rest, query } = targetOf(request)
    hub.port.rejected({
      ip: clientAddress(request, options),
      userAgent: request.headers['user-agent'] ?? null,
      subject: null,
      channels: [...(rest === '' ? [] : [rest]), ...query.getAll('channel')],
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

function asksForEvents(request: IncomingMessage): boolean {
  return request.method === 'GET' && isReaderEndpoint(targetOf(request).endpoint)
}

/** Ends all connections, spread evenly. Returns a function that lets those stay who are still here. */
function endConnections(hub: Hub, { retryMs, withinMs }: { retryMs(): number; withinMs: number }): () => void {
  const names = [...hub.connections()].map(({ connection }) => connection)
  const timers: NodeJS.Timeout[] = []
  for (const [index, name] of names.entries()) {
    const end = () => hub.disconnect(name, { reason: 'maintenance', retryMs: retryMs() })
    if (withinMs === 0) end()
    else timers.push(setTimeout(end, (withinMs * index) / names.length).unref())
  }
  return () => {
    for (const timer of timers) clearTimeout(timer)
  }
}
