import { type CloseReason, RejoinError } from '@rejoin/protocol'
import type { Hub } from '../hub/hub.ts'
import type { ReaderFacts, RejectedReader } from '../hub/observation.ts'
import { checkedGrant, type Grant, mayPublish, maySubscribe, type Rights } from '../hub/readers/grant.ts'
import type { Admitted, SubscribeRequest } from '../hub/readers/subscribe-request.ts'
import {
  type Answer,
  closedStream,
  jsonAnswer,
  notCovered,
  nothingMore,
  rateLimited,
  readerRejection,
  rejection,
  shownError,
  streamHeaders,
  wrongMethod,
} from './answer.ts'
import { answerPoll, isPoll, type Poller, readsStatus } from './poll.ts'
import { maxBodyBytes, publishBody } from './publish.ts'
import type { RequestHead } from './request-head.ts'
import { type AskedStream, type Channels, namedSelectors, readSubscription } from './subscribe.ts'
import type { Target } from './target.ts'

/**
 * What to do with a request: answer it, stream to it, answer it once there is an event (a poll), or read its body first. An
 * adapter carries the plan out in its framework's terms, and decides nothing.
 */
export type Plan =
  | { readonly kind: 'answer'; readonly answer: Answer }
  /** The program's own code failed. The framework's error handler gets `error`; without a handler, `answer` is sent. */
  | { readonly kind: 'failure'; readonly error: unknown; readonly answer: Answer }
  | {
      readonly kind: 'stream'
      readonly headers: Readonly<Record<string, string>>
      readonly reader: Admitted
    }
  | { readonly kind: 'poll'; answer(poller: Poller): Promise<Answer> }
  | { readonly kind: 'body'; readonly maxBytes: number; accept(body: Uint8Array): Promise<Answer> }

/** For a path that neither the hub nor another handler serves. */
export const nothingHere: Plan & { kind: 'answer' } = answerWith(
  jsonAnswer(404, {
    error: { code: 'not-found', message: 'Nothing is here. Read /events/<channel>, or POST to /publish/<channel>.' },
  }),
)

/** The plan for a request; undefined when the path is not one of the hub's. Never throws and never rejects. */
export function route(hub: Hub, request: RequestHead): Promise<Plan> | undefined {
  const target = request.target.below(request.basePath ?? '')
  const plan = planFor(hub, target, request)
  return plan && explained(hub, plan)
}

function planFor(hub: Hub, target: Target, request: RequestHead): Promise<Plan> | undefined {
  switch (target.endpoint) {
    case 'events':
    case 'stream':
      return toldOf(hub, target, request, planReader(hub, channelOf(hub, target), target, request))
    case 'poll':
      return toldOf(hub, target, request, planPoll(hub, channelOf(hub, target), target, request))
    case 'publish':
      return planPublish(hub, target, request)
    case 'end':
      return planEnd(hub, target, request)
    case 'channels':
      return planDelete(hub, target, request)
    default:
      return undefined
  }
}

/** The channel in the path. A request that names no channel at all gets the hub's default channel, or '' without one. */
function channelOf({ port: { defaultChannel = '' } }: Hub, { rest, query }: Target): string {
  return rest === '' && !query.has('channel') ? defaultChannel : rest
}

/** The plan for a stream at a route of the program's own, or for a poll at the same route. Never throws and never rejects. */
export function routeStream(
  hub: Hub,
  request: RequestHead,
  channels: () => Channels | Promise<Channels>,
): Promise<Plan> {
  const plan = async () => planReader(hub, await channels(), request.target, request)
  return explained(hub, toldOf(hub, request.target, request, plan()))
}

/**
 * Tells the hub's observers when a reader's request is rejected. During an outage, such as a key set that cannot be read, a
 * reader that cannot read a status gets a stream that ends at once.
 */
async function toldOf(hub: Hub, target: Target, request: RequestHead, plan: Promise<Plan>): Promise<Plan> {
  try {
    return await plan
  } catch (error) {
    const reason = isOurs(error) && request.method === 'GET' && !readsStatus(target) && outages[error.code]
    tellRejection(hub, target, request, error, reason ? { status: 200 } : {})
    if (!reason) throw error
    if (error.code === 'unreachable') hub.port.failed(error)
    const retryMs = hub.port.retryMsFor(namedSelectors(channelOf(hub, target), target.query))
    return answerWith(closedStream(reason, retryMs))
  }
}

/** What a reader is told when it is not known whether it may read. */
const outages: Partial<Record<string, CloseReason>> = {
  'log-unavailable': 'log-unavailable',
  overloaded: 'overloaded',
  unreachable: 'overloaded',
}

function tellRejection(
  hub: Hub,
  target: Target,
  request: RequestHead,
  error: unknown,
  { action, channels, status = rejection(error).status }: Partial<RejectedReader> = {},
): void {
  hub.port.rejected({
    ip: addressIn(request),
    userAgent: request.header('user-agent') ?? null,
    subject: null,
    channels: channels ?? namedSelectors(action ? target.rest : channelOf(hub, target), target.query),
    reason: isOurs(error) ? error.code : 'internal',
    status,
    ...(action && { action }),
  })
}

/** Tells the hub's observers of a publisher without the right to an action. Its other mistakes concern the publisher alone. */
function tellIfNotAllowed(
  hub: Hub,
  target: Target,
  request: RequestHead,
  error: unknown,
  action: NonNullable<RejectedReader['action']>,
  channels?: readonly string[],
): void {
  if (isOurs(error) && (error.code === 'unauthorized' || error.code === 'forbidden')) {
    tellRejection(hub, target, request, error, { action, ...(channels && { channels }) })
  }
}

function addressIn(request: RequestHead): string | null {
  try {
    return request.peer().ip || null
  } catch {
    // The program's own code failed to give the address. The request is answered with that same failure.
    return null
  }
}

/** Turns a rejected promise into a plan that answers with the error. */
function explained(hub: Hub, plan: Promise<Plan>): Promise<Plan> {
  return plan.catch((error): Plan => {
    const answer = explain(hub)(error)
    return isOurs(error) ? answerWith(answer) : { kind: 'failure', error: shownError(error), answer }
  })
}

/** Turns an error into an answer. Tells the program of every error that the requester did not cause. */
function explain(hub: Hub): (error: unknown) => Answer {
  return (error) => {
    if (!isOurs(error) || error.code === 'unreachable') hub.port.failed(error)
    return rejection(error)
  }
}

/** Whether this is an error of Rejoin that says what is wrong with the request. */
function isOurs(error: unknown): error is RejoinError {
  return error instanceof RejoinError && error.code !== 'internal'
}

function planReader(hub: Hub, channels: Channels, target: Target, request: RequestHead): Promise<Plan> {
  const plan = isPoll(target) ? planPoll : planStream
  return plan(hub, channels, target, request)
}

async function planStream(hub: Hub, channels: Channels, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return answerWith(wrongMethod('GET'))
  const subscribe = await readRequest(hub, channels, target, request)
  const { rights } = subscribe
  const verdict = await hub.port.admit(subscribe, { readsStatus: target.query.get('reject') === 'status' })
  if (verdict.kind === 'rejected') return answerWith(readerRejection(verdict.rejection))
  if (verdict.kind !== 'admitted') return answerWith(nothingMoreOf(verdict.kind, subscribe))
  const headers = streamHeaders(rights !== undefined)
  if (request.method === 'HEAD') return answerWith({ status: 200, headers, body: '' })
  return { kind: 'stream', headers, reader: verdict }
}

async function planPoll(hub: Hub, channels: Channels, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'GET') return answerWith(wrongMethod('GET'))
  const subscribe = await readRequest(hub, channels, target, request)
  // A poll is not rejected here but by its answer, because a reader that polls already keeps its room.
  const verdict = await hub.port.admit(subscribe, { readsStatus: false, polls: true })
  if (verdict.kind === 'deleted' || verdict.kind === 'finished')
    return answerWith(nothingMoreOf(verdict.kind, subscribe))
  return { kind: 'poll', answer: (poller) => answerPoll(hub, subscribe, target, poller).catch(explain(hub)) }
}

/** The answer for a reader whose channels have all ended. Throws when they were deleted: the client must not return. */
function nothingMoreOf(kind: 'finished' | 'deleted', { subscription }: SubscribeRequest): Answer {
  if (kind === 'finished') return nothingMore
  const selectors = subscription.selectors.join(', ')
  throw new RejoinError(`${selectors} was deleted. Remove the subscription.`, { code: 'channel-deleted' })
}

/** The subscription that a reader asks for. Throws when the reader has no right to it. */
async function readRequest(
  hub: Hub,
  channels: Channels,
  target: Target,
  request: RequestHead,
): Promise<SubscribeRequest & { reader: ReaderFacts }> {
  const { ip, trusted } = request.peer()
  const asked = readSubscription(channels, target, request, trusted)
  const asOf = hub.port.revocations
  const userAgent = request.header('user-agent') ?? null
  const address = ip || null
  if (!request.authorize) return requestOf(asked, { ip: address, userAgent, subject: null }, undefined)
  const grant = (await grantOf(request)) as Grant
  if (!maySubscribe(grant, asked.subscription)) throw notCovered(grant)
  const renew = () => renewedGrant(hub, request)
  return requestOf(asked, { ip: address, userAgent, subject: grant.subject }, { grant, renew, asOf })
}

/** One literal for all readers: V8 gives an object that is made by a spread a shape of its own, which takes 3 µs. */
function requestOf(
  { subscription, start, client, heartbeat }: AskedStream,
  reader: ReaderFacts,
  rights: Rights | undefined,
): SubscribeRequest & { reader: ReaderFacts } {
  return { subscription, start, client, heartbeat, reader, rights }
}

async function planPublish(hub: Hub, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'POST') return answerWith(wrongMethod('POST'))
  const channel = target.rest
  // Checked before the body is read, so that a sender without the right to publish cannot fill the memory.
  const { grant, waitMs } = await allowedPublisher(hub, target, request, 'publish')
  if (waitMs > 0) return answerWith(rateLimited(waitMs))
  const idempotencyKey = request.header('idempotency-key')
  const options = {
    ...(grant?.subject ? { subject: grant.subject } : {}),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  }
  let rejected: string[] | undefined
  const assertAllowed = (name: string) => {
    if (!grant || mayPublish(grant, name)) return
    rejected = [name.slice(0, maxShownName)]
    throw notCovered(grant)
  }
  const isText = saysPlainText(request.header('content-type'))
  const accept = (bytes: Uint8Array) =>
    publishBody(hub, channel, target, { bytes, isText }, assertAllowed, options).catch((error) => {
      tellIfNotAllowed(hub, target, request, error, 'publish', rejected)
      return explain(hub)(error)
    })
  return { kind: 'body', maxBytes: maxBodyBytes, accept }
}

/** Any other type says too little: `curl -d` calls every body a form. */
function saysPlainText(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*text\/plain\s*(?:;|$)/i.test(contentType)
}

// No channel has a longer name (§5.2), but a body may hold any text as its `channel`.
const maxShownName = 256

async function planEnd(hub: Hub, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'POST') return answerWith(wrongMethod('POST'))
  const channel = target.rest
  const { waitMs } = await allowedPublisher(hub, target, request, 'end')
  if (waitMs > 0) return answerWith(rateLimited(waitMs))
  return answerWith(jsonAnswer(200, await hub.end(channel)))
}

async function planDelete(hub: Hub, target: Target, request: RequestHead): Promise<Plan> {
  if (request.method !== 'DELETE') return answerWith(wrongMethod('DELETE'))
  const channel = target.rest
  const { waitMs } = await allowedPublisher(hub, target, request, 'delete')
  if (waitMs > 0) return answerWith(rateLimited(waitMs))
  return answerWith(jsonAnswer(200, await hub.delete(channel)))
}

/** The rights of a publisher, and for how long it has to wait. Throws when it has no right to this action. */
async function allowedPublisher(
  hub: Hub,
  target: Target,
  request: RequestHead,
  action: 'publish' | 'end' | 'delete',
): Promise<Publisher> {
  try {
    const publisher = await publisherOf(request)
    const { grant, waitMs } = publisher
    if (waitMs > 0 || !grant) return publisher
    // An envelope names its channel in the body.
    const isInBody = target.rest === '' && action === 'publish'
    if (isInBody ? (grant.publish ?? []).length > 0 : mayPublish(grant, target.rest)) return publisher
    throw notCovered(grant)
  } catch (error) {
    tellIfNotAllowed(hub, target, request, error, action)
    throw error
  }
}

interface Publisher {
  readonly grant: Grant | undefined
  readonly waitMs: number
}

/**
 * The rights of a publisher, and for how long it has to wait. A publisher without valid credentials counts against its limit too:
 * otherwise guessing tokens would be free.
 */
async function publisherOf(request: RequestHead): Promise<Publisher> {
  const { rateLimit } = request
  if (!rateLimit) return { grant: await grantOf(request), waitMs: 0 }
  let grant: Grant | undefined
  let unknown: unknown
  try {
    grant = await grantOf(request)
  } catch (error) {
    unknown = error
  }
  const waitMs = rateLimit(grant?.subject ?? null)
  if (unknown !== undefined && waitMs === 0) throw unknown
  return { grant, waitMs }
}

/** The requester's rights; undefined when the hub has no `authorize`. */
async function grantOf({ authorize }: RequestHead): Promise<Grant | undefined> {
  if (!authorize) return undefined
  const grant = await authorize()
  if (grant) return checkedGrant(grant)
  throw new RejoinError('This hub wants to know who you are. Send a valid token.', { code: 'unauthorized' })
}

/** The present rights of a connected reader. Null ends its stream; `authorize` that fails gives null, too. */
async function renewedGrant(hub: Hub, request: RequestHead): Promise<Grant | null> {
  try {
    return (await grantOf(request)) ?? null
  } catch (error) {
    if (!isOurs(error)) hub.port.failed(error)
    return null
  }
}

function answerWith(answer: Answer): Plan & { kind: 'answer' } {
  return { kind: 'answer', answer }
}
