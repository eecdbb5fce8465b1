import { RejoinError } from '@rejoin/protocol'
import { checkedGrant, type Grant, mayPublish, maySubscribe } from '../hub/grant.ts'
import type { Hub, SubscribeRequest } from '../hub/hub.ts'
import type { ReaderFacts } from '../hub/observation.ts'
import { type Answer, forbidden, jsonAnswer, nothingMore, refusal, shownError, tooFast, turnedAway } from './answer.ts'
import { answerPoll, type Poller } from './poll.ts'
import { maxBodyBytes, publishBody } from './publish.ts'
import { type Channels, readSubscription, streamHeaders } from './subscribe.ts'
import { below, parseTarget, pathUnder, type Target } from './target.ts'

/** A request, as far as routing needs it: what every HTTP framework can tell. */
export interface RequestHead {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** What stands before the hub's own paths; left out, nothing. */
  readonly basePath?: string
  /** Value of the header with this lower-case name. */
  header(name: string): string | undefined
  /**
   * Who is at the other end. Asked while the plan is made, because it runs code of the framework and of the program: what
   * it throws is then explained like any other failure of a plan.
   */
  peer(): Peer
  /** Asks the program for the requester's rights; undefined where everybody may do everything. */
  readonly authorize: (() => Grant | null | Promise<Grant | null>) | undefined
}

export interface Peer {
  /** Its address. Nothing, or an empty text, when unknown: a connection that was reset has none any more. */
  readonly ip: string | null | undefined
  /** Whether it is a proxy of ours, whose forwarded headers may be believed. */
  readonly trusted: boolean
}

/**
 * What to do with a request: answer it, stream to it, answer it when there is something, or read its body first. An
 * adapter carries it out in its framework's terms and decides nothing.
 */
export type Plan =
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** The program's own code failed: for the framework's error handler, or to be answered where there is none. */
  | { readonly kind: 'failure'; readonly error: unknown; readonly answer: Answer }
  | {
      readonly kind: 'stream'
      readonly headers: Readonly<Record<string, string>>
      readonly subscribe: SubscribeRequest
    }
  | { readonly kind: 'poll'; answer(poller: Poller): Promise<Answer> }
  | { readonly kind: 'body'; readonly maxBytes: number; accept(body: Uint8Array): Promise<Answer> }

/** The first segments of the hub's paths, for frameworks that want to know them beforehand. */
export const doors = ['events', 'stream', 'poll', 'publish', 'end'] as const

/** For a path that is nobody's. */
export const nothingHere: Plan = answerWith(
  jsonAnswer(404, {
    error: { code: 'not-found', message: 'Nothing is here. Read /events/<channel>, or POST to /publish/<channel>.' },
  }),
)

/** The plan for a request, undefined when its path is none of the hub's. Never throws and never rejects. */
export function route(hub: Hub, request: RequestHead): Promise<Plan> | undefined {
  const target = parseTarget(request.url)
  const path = pathUnder(request.basePath ?? '', target.path)
  const stream = below('events', path) ?? below('stream', path)
  const poll = below('poll', path)
  const publish = below('publish', path)
  const end = below('end', path)
  const plan =
    (stream !== undefined && planStream(hub, stream, target, request)) ||
    (poll !== undefined && planPoll(hub, poll, target, request)) ||
    (publish !== undefined && planPublish(hub, publish, target, request)) ||
    (end !== undefined && planEnd(hub, end, request))
  return plan ? explained(hub, plan) : undefined
}

/** The plan for a request that the program has routed to a stream by itself. Never throws and never rejects. */
export function routeStream(
  hub: Hub,
  request: RequestHead,
  channels: () => Channels | Promise<Channels>,
): Promise<Plan> {
  const plan = async () => planStream(hub, await channels(), parseTarget(request.url), request)
  return explained(hub, plan())
}

/** With an answer in place of a rejection. */
function explained(hub: Hub, plan: Promise<Plan>): Promise<Plan> {
  return plan.catch((error): Plan => {
    const answer = explain(hub)(error)
    return isOurs(error) ? answerWith(answer) : { kind: 'failure', error: shownError(error), answer }
  })
}

/** Makes an answer of what went wrong, and tells the program of everything that is not the requester's doing. */
function explain(hub: Hub): (error: unknown) => Answer {
  return (error) => {
    if (!isOurs(error) || error.code === 'unreachable') hub.failed(error)
    return refusal(error)
  }
}

/** Whether it is a refusal that says all there is to say. */
function isOurs(error: unknown): error is RejoinError {
  return error instanceof RejoinError && error.code !== 'internal'
}

async function planStream(hub: Hub, channels: Channels, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return wrongMethod('GET')
  const subscribe = await readRequest(hub, channels, target, request)
  const { reader, subscription, rights } = subscribe
  const away = target.query.get('reject') === 'status' ? hub.refuse(reader, subscription) : undefined
  if (away) return answerWith(turnedAway(away))
  if (await hub.hasNothingFor(subscribe)) return answerWith(nothingMore)
  const headers = streamHeaders(rights !== undefined)
  if (request.method === 'HEAD') return answerWith({ status: 200, headers, body: '' })
  return { kind: 'stream', headers, subscribe }
}

async function planPoll(hub: Hub, channel: string, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'GET') return wrongMethod('GET')
  const subscribe = await readRequest(hub, channel, target, request)
  if (await hub.hasNothingFor(subscribe)) return answerWith(nothingMore)
  return { kind: 'poll', answer: (poller) => answerPoll(hub, subscribe, target, poller).catch(explain(hub)) }
}

/** What a reader asks for, if it may. */
async function readRequest(
  hub: Hub,
  channels: Channels,
  target: Target,
  request: RequestHead,
): Promise<SubscribeRequest & { reader: ReaderFacts }> {
  const { ip, trusted } = request.peer()
  const asked = readSubscription(channels, target, request, trusted)
  const asOf = hub.revocations
  const grant = await grantOf(request)
  if (grant && !maySubscribe(grant, asked.subscription)) throw forbidden()
  const userAgent = request.header('user-agent') ?? null
  const reader = { ip: ip || null, userAgent, subject: grant?.subject ?? null }
  const renew = () => renewedGrant(hub, request)
  return { ...asked, reader, ...(grant ? { rights: { grant, renew, asOf } } : {}) }
}

async function planPublish(hub: Hub, channel: string, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'POST') return wrongMethod('POST')
  const grant = await grantOf(request)
  if (grant?.waitMs) return answerWith(tooFast(grant.waitMs))
  // Before the body is read: whoever may not publish must not be able to fill the memory either.
  if (grant && !(channel === '' ? (grant.publish ?? []).length > 0 : mayPublish(grant, channel))) throw forbidden()
  const idempotencyKey = request.header('idempotency-key')
  const options = {
    ...(grant?.subject ? { subject: grant.subject } : {}),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  }
  const accept = (body: Uint8Array) => publishBody(hub, channel, target, body, grant, options).catch(explain(hub))
  return { kind: 'body', maxBytes: maxBodyBytes, accept }
}

async function planEnd(hub: Hub, channel: string, request: RequestHead): Promise<Plan> {
  if (request.method !== 'POST') return wrongMethod('POST')
  const grant = await grantOf(request)
  if (grant?.waitMs) return answerWith(tooFast(grant.waitMs))
  if (grant && !mayPublish(grant, channel)) throw forbidden()
  return answerWith(jsonAnswer(200, await hub.end(channel)))
}

/** The requester's rights, undefined when this hub asks for none. */
async function grantOf({ authorize }: RequestHead): Promise<Grant | undefined> {
  if (!authorize) return undefined
  const grant = await authorize()
  if (grant) return checkedGrant(grant)
  throw new RejoinError('This hub wants to know who you are. Send a valid token.', { code: 'unauthorized' })
}

/** The same for a reader that is here already. Null, which ends its stream, also when the program fails to say. */
async function renewedGrant(hub: Hub, request: RequestHead): Promise<Grant | null> {
  try {
    return (await grantOf(request)) ?? null
  } catch (error) {
    if (!isOurs(error)) hub.failed(error)
    return null
  }
}

function answerWith(answer: Answer): Plan {
  return { kind: 'answer', answer }
}

function wrongMethod(allowed: string): Plan {
  const error = { code: 'wrong-method', message: `This path takes ${allowed} only.` }
  return answerWith(jsonAnswer(405, { error }, { Allow: allowed }))
}
