import type { ServerResponse } from 'node:http'
import { encodeClose } from '@rejoin/protocol'
import { doorOf, readerDoors } from '../doors.ts'
import type { Middleware } from '../middleware.ts'
import { refuse } from '../refusal.ts'
import { requestTarget } from '../request-target.ts'

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
      const takesStatus = door === 'poll' || requestTarget(request).query().get('reject') === 'status'
      if (takesStatus) unavailable(response, retryMs())
      else sayGoodbye(response, retryMs())
      return true
    },
  }
}

function unavailable(response: ServerResponse, retryMs: number): void {
  response.setHeader('Retry-After', String(Math.ceil(retryMs / 1000)))
  refuse(response, 503, 'overloaded', 'This hub is being worked on. Retry-After says when to return.')
}

/** For whoever may be a native `EventSource`, which never comes back after any other status than 200 (§4.12). */
function sayGoodbye(response: ServerResponse, retryMs: number): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' })
  response.end(encodeClose({ reason: 'maintenance' }, { retryMs }))
}
