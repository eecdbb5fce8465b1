import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ProbeHello, type ProbeScript, probeChannel, probeScripts, probeToken } from '@rejoin/doctor/probe'
import { addressOf, jsonAnswer, networkOf, sendPlainAnswer, streamHeaders, targetOf } from '@rejoin/hub/internal'
import type { Middleware } from '../http/middleware.ts'
import { reject, rejectMethod } from '../http/rejection.ts'
import { createRoom, type RoomOptions } from './room.ts'
import { playScript } from './script.ts'
import { createSightings } from './sightings.ts'

/**
 * Answers the probes of `rejoin doctor`. Everybody may ask for a probe: it carries nothing of the log, and leaves nothing there.
 * Probes are limited in number, rate, length and size, so that they cannot be used for an attack.
 */
export function probeEndpoint(options: ProbeOptions): Probes {
  const { version, heartbeatMs, trustProxy, onReject } = options
  const room = createRoom(options)
  const sightings = createSightings(room.now)
  const open = new Set<ServerResponse>()

  function answer(request: IncomingMessage, response: ServerResponse, rest: string): void {
    const network = networkOf(addressOf(request, trustProxy) ?? '')
    const waitMs = room.ask(network)
    const [script = '', token = ''] = rest.split('/')
    if (waitMs > 0) rejectBusy(response, waitMs)
    else if (!probeToken.test(token)) reject(response, 'not-found', nothingHere)
    else if (script === 'seen') sendSeen(response, token)
    else if (isScript(script)) admit(request, response, { script, token, network })
    else reject(response, 'not-found', nothingHere)
  }

  function admit(
    request: IncomingMessage,
    response: ServerResponse,
    probe: Omit<Probe, 'leave'> & { network: string },
  ) {
    const leave = room.enter(probe.network)
    // A response that waits behind another gets no 'close' when their connection closes, so it could never leave.
    if (leave && response.socket !== null) {
      stream(request, response, { ...probe, leave })
    } else {
      leave?.()
      rejectBusy(response, busyMs)
    }
  }

  function stream(request: IncomingMessage, response: ServerResponse, probe: Probe): void {
    open.add(response)
    sightings.opened(probe.token)
    for (const [name, value] of Object.entries(streamHeaders(false))) response.setHeader(name, value)
    const stop = playScript(probe, helloOf(request, response), response)
    response.once('close', () => {
      stop()
      probe.leave()
      open.delete(response)
      sightings.closed(probe.token)
    })
  }

  function helloOf(request: IncomingMessage, response: ServerResponse): ProbeHello {
    return {
      serial: randomUUID(),
      version,
      heartbeatMs,
      header: shortened(request.headers['last-event-id']?.toString()),
      query: shortened(targetOf(request).query.get('lastEventId')),
      sent: sentHeaders(response),
    }
  }

  function sendSeen(response: ServerResponse, token: string): void {
    sendPlainAnswer(response, jsonAnswer(200, sightings.of(token)))
  }

  function rejectBusy(response: ServerResponse, waitMs: number): void {
    onReject('probes')
    response.setHeader('Retry-After', String(Math.ceil(waitMs / 1000)))
    reject(response, 'rate-limited', 'This hub answers few probes at a time. Retry-After says when to ask again.')
  }

  return {
    middleware(request, response) {
      const { endpoint, path } = targetOf(request)
      if (!(endpoint === 'events' || endpoint === 'stream')) return false
      const start = endpoint.length + 2
      if (!path.startsWith(prefix, start)) return false
      if (request.method === 'GET') answer(request, response, path.slice(start + prefix.length))
      else rejectMethod(response, 'GET')
      return true
    },
    close() {
      for (const response of open) response.end()
    },
  }
}

export interface ProbeOptions extends RoomOptions {
  readonly version: string
  /** The interval of the hub's heartbeats. */
  readonly heartbeatMs: number
  readonly trustProxy: boolean
  onReject(kind: 'probes'): void
}

export interface Probes {
  /** Stands right before the hub, behind all other middleware that may reject a request. */
  readonly middleware: Middleware
  /** Ends the probes that are open. */
  close(): void
}

interface Probe {
  readonly script: ProbeScript
  readonly token: string
  /** Gives back the room of this probe. */
  leave(): void
}

const prefix = `${probeChannel}/`
const busyMs = 5000
const nothingHere = 'There is no such probe. Run: rejoin doctor <url>'

function isScript(text: string): text is ProbeScript {
  return probeScripts.some((each) => each === text)
}

function shortened(text: string | null | undefined): string | null {
  return text ? text.slice(0, 128) : null
}

/** Only the headers that the doctor compares, and none that tells who asked. */
function sentHeaders(response: ServerResponse): Record<string, string> {
  const sent = compared.flatMap((name) => {
    const value = response.getHeader(name)
    return value === undefined ? [] : [[name, String(value)]]
  })
  return Object.fromEntries(sent)
}

const compared = ['access-control-allow-origin', 'cache-control', 'content-type']
