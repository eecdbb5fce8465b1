import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  heartbeatAfter,
  longestProbeMs,
  type ProbeHello,
  type ProbeScript,
  type ProbeSeen,
  type ProbeTick,
  probeChannel,
  probeId,
  probeScripts,
  probeToken,
  silentForMs,
  spacedEvents,
  spacedEveryMs,
} from '@rejoin/doctor/probe'
import { addressOf, jsonAnswer, networkOf, sendPlainAnswer, streamHeaders, targetOf } from '@rejoin/hub/internal'
import { encodeComment, encodeEvent } from '@rejoin/protocol'
import type { Middleware } from './http/chain.ts'
import { reject, rejectMethod } from './http/rejection.ts'
import { createForgetfulMap } from './limits/forgetful-map.ts'
import { createTokenBuckets } from './limits/token-bucket.ts'

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

/** Writes a probe from its first frame to its end. Returns a function that stops it. */
export function playScript(
  { script, token }: { readonly script: ProbeScript; readonly token: string },
  hello: ProbeHello,
  response: ServerResponse,
): () => void {
  const startedAt = performance.now()
  let n = 0
  let timer: NodeJS.Timeout | undefined

  function send(type: string, data: object): void {
    response.write(encodeEvent({ type, id: probeId(token, n), data: JSON.stringify(data) }))
  }

  function tick(): void {
    n += 1
    send('tick', { n, atMs: Math.round(performance.now() - startedAt) } satisfies ProbeTick)
    if (n % heartbeatAfter === 0) response.write(heartbeat)
    if (n >= spacedEvents) end()
  }

  function end(): void {
    stop()
    n += 1
    send('end', {})
    response.end()
  }

  function stop(): void {
    clearInterval(timer)
    clearTimeout(longest)
  }

  const longest = setTimeout(end, script === 'silent' ? silentForMs : longestProbeMs)
  send('probe', hello)
  if (script === 'spaced') timer = setInterval(tick, spacedEveryMs)
  if (script === 'beating') timer = setInterval(() => response.write(heartbeat), hello.heartbeatMs)
  return stop
}

const heartbeat = encodeComment('hb')

/** Remembers whether recent probes are open or closed, for a doctor that asks whether the hub saw it leave. */
export interface Sightings {
  opened(token: string): void
  closed(token: string): void
  of(token: string): ProbeSeen
}

export function createSightings(now: () => number): Sightings {
  const seen = createForgetfulMap<{ closedAt?: number }>({ forMs: rememberedMs, maxEntries })
  return {
    opened: (token) => seen.set(token, {}, now()),
    closed: (token) => seen.set(token, { closedAt: now() }, now()),
    of(token) {
      const known = seen.get(token, now())
      if (!known) return { state: 'unknown' }
      if (known.closedAt === undefined) return { state: 'open' }
      return { state: 'closed', closedMsAgo: Math.round(now() - known.closedAt) }
    },
  }
}

// Probes are remembered for as long as they can be open, so that every open probe is known.
const rememberedMs = 120_000
const maxEntries = 1000

/** The limits on probes: how many at once and how many in a second, from one network and in all. */
export interface Room {
  /** Counts a request. Returns 0 when it may be answered, else for how many milliseconds to wait. */
  ask(network: string): number
  /** Takes room for a stream; undefined when there is none. The returned function gives the room back. */
  enter(network: string): (() => void) | undefined
  now(): number
}

export function createRoom({ now = () => performance.now() }: RoomOptions = {}): Room {
  const ofNetwork = createTokenBuckets({ perSecond: 2, burst: askedByOneDoctor * 2, now })
  const ofAll = createTokenBuckets({ perSecond: 10, burst: askedByOneDoctor * 4, now })
  const here = new Map<string, number>()
  let inAll = 0

  return {
    now,
    ask: (network) => ofNetwork.take(network) || ofAll.take(''),
    enter(network) {
      const mine = here.get(network) ?? 0
      if (inAll >= mostInAll || mine >= mostOfNetwork) return undefined
      here.set(network, mine + 1)
      inAll += 1
      let isIn = true
      return () => {
        if (!isIn) return
        isIn = false
        inAll -= 1
        const left = (here.get(network) ?? 0) - 1
        if (left > 0) here.set(network, left)
        else here.delete(network)
      }
    },
  }
}

export interface RoomOptions {
  /**
   * A clock in milliseconds that never steps back.
   * @defaultValue performance.now
   */
  now?: () => number
}

// One run of the doctor sends about 25 requests. Behind a proxy that does not name its clients, all clients are one network.
const askedByOneDoctor = 30
// One run has seven streams open at most, and eight with --idle.
const mostOfNetwork = 16
const mostInAll = 32
