import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hub } from '@rejoin/hub'
import {
  type Answer,
  boundPipelining,
  createNodeExchange,
  jsonAnswer,
  nodeAddress,
  nodeHead,
  type Plan,
  parseTarget,
  peerOf,
  rejection,
  routeStream,
  sendPlainAnswer,
  targetOf,
  wrongMethod,
} from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import type { Browses, TakenBrowse } from './browses.ts'
import { streamEvents } from './event-stream.ts'
import type { KnownFact } from './feed.ts'
import type { Mdns, MdnsOptions } from './mdns.ts'
import { allTypes, channelOf, type ServiceType, serviceType, splitInstance } from './service-type.ts'
import type { Timing } from './timing.ts'

/** Answers requests below `/v1/mdns/`. Other requests go to `next`, or get 404 when there is no `next`. */
export type MdnsHandler = (request: IncomingMessage, response: ServerResponse, next?: (error?: unknown) => void) => void

export interface HandlerOptions extends Pick<Mdns, 'resolve' | 'status'> {
  readonly hub: Hub
  readonly timing: Timing
  readonly browses: Browses
  readonly authorize: MdnsOptions['authorize']
  readonly trustProxy: boolean
}

/** The hub's plan for a stream, and what the request asks of the source. */
type EventPlan = Plan & { kind: 'stream'; type: ServiceType; idleMs: number }

// How long a first browse waits for services. Responders take up to half a second to answer, and may need a second
// query.
const firstLookMs = 1500
const defaultIdleMs = 5000

export function createHandler(options: HandlerOptions): MdnsHandler {
  const { hub, timing, browses, resolve, status, authorize, trustProxy } = options
  const exchange = createNodeExchange(hub, {
    // Every stream that is planned here comes from `planEvents`.
    stream: (plan, request, response) => void openStream(plan as EventPlan, request, response),
  })

  const plans: Readonly<Record<string, (request: IncomingMessage) => Promise<Plan>>> = {
    '/v1/mdns/events': planEvents,
    '/v1/mdns/subscribe': planEvents,
    '/v1/mdns/browse': planBrowse,
    '/v1/mdns/discover': planBrowse,
    '/v1/mdns/resolve': planResolve,
    '/v1/mdns/status': planStatus,
  }

  return boundPipelining((request, response, next?: (error?: unknown) => void) => {
    const { path } = targetOf(request)
    const plan = plans[path.replace(/\/$/, '')]
    if (plan) exchange(plan(request).catch(explained), request, response, next)
    else if (next) next()
    else exchange(nothingHere, request, response)
  })

  async function planEvents(request: IncomingMessage): Promise<Plan> {
    const { query } = targetOf(request)
    const type = serviceType(query.get('type') ?? '')
    const idleMs = idleOf(query.get('idle_for'))
    const plan = await planOf(request, channelOf(type))
    if (plan.kind !== 'stream') return plan
    const events: EventPlan = { ...plan, type, idleMs }
    return events
  }

  async function openStream(plan: EventPlan, request: IncomingMessage, response: ServerResponse): Promise<void> {
    let taken: TakenBrowse
    try {
      taken = await browses.take(plan.type)
    } catch (error) {
      if (!response.destroyed) sendPlainAnswer(response, rejection(error))
      return
    }
    if (response.destroyed) taken.release()
    else streamEvents({ hub, timing, request, response, taken, ...plan })
  }

  function planBrowse(request: IncomingMessage): Promise<Plan> {
    const { query } = targetOf(request)
    const type = query.get('type')
    return answered(request, async () => (type ? serviceType(type) : allTypes), browse)
  }

  function planResolve(request: IncomingMessage): Promise<Plan> {
    const name = targetOf(request).query.get('name') ?? ''
    const typeOf = async () => {
      const asked = splitInstance(name)
      if (asked) return asked.type
      throw new Rejected(400, 'invalid_name', 'Name a service in full: ?name=My%20NAS._http._tcp.local.')
    }
    return answered(request, typeOf, async () => {
      const service = await resolve(name)
      if (service) return { service }
      throw new Rejected(
        504,
        'resolve_timeout',
        'No such service has answered within 5 s. Browse its type to see who does.',
      )
    })
  }

  async function planStatus(request: IncomingMessage): Promise<Plan> {
    const plan = await planOf(request, 'mdns/*')
    return plan.kind === 'stream' ? answerWith(jsonAnswer(200, status())) : plan
  }

  /** An answer in JSON, for a reader that may read the events of the type. */
  async function answered(
    request: IncomingMessage,
    typeOf: () => Promise<ServiceType>,
    answer: (type: ServiceType, plan: Plan & { kind: 'stream' }) => Promise<unknown>,
  ): Promise<Plan> {
    const type = await typeOf()
    const plan = await planOf(request, channelOf(type))
    return plan.kind === 'stream' ? answerWith(jsonAnswer(200, await answer(type, plan))) : plan
  }

  /** The services that are there, and the cursor after which all changes follow. */
  async function browse(type: ServiceType, { reader }: Plan & { kind: 'stream' }): Promise<unknown> {
    const { feed, since, release } = await browses.take(type)
    try {
      const leftMs = since + firstLookMs - timing.now()
      if (leftMs > 0) await new Promise<void>((looked) => timing.after(leftMs, looked))
      const { known, frames } = await feed.join({ ...reader.request, start: { from: 'now' } }, {})
      const { value: hello } = await frames.next()
      await frames.return?.()
      if (hello?.type !== 'hello') throw noRoom()
      return { type, cursor: hello.id, services: known.map(shown), source: sourceOf() }
    } finally {
      release()
    }
  }

  function sourceOf() {
    const { healthy, silentMs, failure } = status()
    return { healthy, silentMs, failure }
  }

  /** The hub's plan for the request, by the rights that `authorize` gives. */
  function planOf(request: IncomingMessage, channel: string): Promise<Plan> {
    const { method, target, header } = nodeHead(request)
    if (method !== 'GET' && method !== 'HEAD') return Promise.resolve(answerWith(wrongMethod('GET')))
    const head = {
      method,
      header,
      target: hubTarget(target.query),
      peer: () => peerOf({ header }, nodeAddress(request), trustProxy),
      authorize: authorize && (() => authorize(request)),
      rateLimit: undefined,
    }
    return routeStream(hub, head, () => [channel])
  }
}

export const mdnsPaths = ['events', 'subscribe', 'browse', 'discover', 'resolve', 'status'].map(
  (name) => `/v1/mdns/${name}`,
)

/**
 * The query for the hub, without the parameters that mean something else there: for a hub, `type` is a type of event.
 */
function hubTarget(query: URLSearchParams) {
  const ours = new URLSearchParams(query)
  for (const name of ['type', 'channel', 'added', 'show']) ours.delete(name)
  return parseTarget(`/events?${ours}`)
}

/** A known service as one flat object with its id, like its event. */
function shown({ id, fact }: KnownFact): object {
  return { id, event: fact.event, ...fact.service }
}

/** How long a stream stays open without an event, in milliseconds. Heartbeats are no events. */
function idleOf(text: string | null): number {
  if (text === null) return defaultIdleMs
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000 || Number.POSITIVE_INFINITY
  const message = 'idle_for is a whole number of seconds up to 999999, 0 for a stream that stays open.'
  throw new Rejected(400, 'invalid_idle_for', message)
}

/** A request that cannot be served, with the error codes of these paths. */
class Rejected extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

function explained(error: unknown): Plan {
  if (error instanceof Rejected) return answerWith(rejectedWith(error.status, error.code, error.message))
  if (error instanceof RejoinError && error.code === 'invalid-type') {
    return answerWith(rejectedWith(400, 'invalid_type', error.message))
  }
  const answer = rejection(error)
  return error instanceof RejoinError ? answerWith(answer) : { kind: 'failure', error, answer }
}

function rejectedWith(status: number, code: string, message: string): Answer {
  return jsonAnswer(status, { error: { code, message } }, { 'X-Content-Type-Options': 'nosniff' })
}

function noRoom(): RejoinError {
  return new RejoinError('The hub lets no reader in now. Try again.', { code: 'overloaded', retryable: true })
}

function answerWith(answer: Answer): Plan {
  return { kind: 'answer', answer }
}

const nothingHere = answerWith(rejectedWith(404, 'not_found', 'Nothing is here. Read /v1/mdns/events?type=_http._tcp.'))
