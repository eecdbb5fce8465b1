import type { IncomingMessage, ServerResponse } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import type { Hub } from '../hub/hub.ts'
import { type Answer, readerRejection, rejection } from './answer.ts'
import { createBodyReader } from './body-reader.ts'
import { onceClosing } from './closing-server.ts'
import { hasGone, onceGone } from './connection.ts'
import { createLateHeads } from './late-heads.ts'
import { defaultBudgetBytes } from './options.ts'
import { inTurn } from './pipelining.ts'
import { streamTo } from './response-reader.ts'
import type { Plan } from './route.ts'
import { connectionOf, sendAnswer } from './send.ts'
import { discardBody } from './unwanted-body.ts'

/**
 * Carries out the plan for a request, on Node's own request and response. Never throws: an error is told to the hub's observers,
 * and costs this response alone. A failure of the program's own code goes to `next`, if it is given.
 */
export type NodeExchange = (
  plan: Plan | Promise<Plan>,
  request: IncomingMessage,
  response: ServerResponse,
  next?: (error: unknown) => void,
) => void

/** For adapters whose framework runs on Node's HTTP server. HTTP/2 is served by Node's compatible API. */
export function createNodeExchange(hub: Hub, options: NodeExchangeOptions): NodeExchange {
  const { sinkBudgetBytes: budgetBytes = defaultBudgetBytes, maxBodyBytes = Number.POSITIVE_INFINITY } = options
  const { stream = streamOfHub } = options
  const heads = createLateHeads((error) => hub.port.failed(error))

  return (planned, request, response, next) => {
    void carryOut(planned, request, response, next).catch((error) => {
      hub.port.failed(error)
      giveUp(hub, request, response, error)
    })
  }

  async function carryOut(
    planned: Plan | Promise<Plan>,
    request: IncomingMessage,
    response: ServerResponse,
    next: ((error: unknown) => void) | undefined,
  ): Promise<void> {
    // A reader often vanishes during a write. That is no error for anybody: 'close' follows, and tells the session.
    response.on('error', destroy)
    const plan = await whilePlanned(planned, request)
    // Without the wait, pipelined polls and streams would have their bytes in memory long before they can be sent.
    if (response.socket === null && (plan.kind === 'stream' || plan.kind === 'poll')) await inTurn(response)
    if (!isFree(response)) return
    if (plan.kind === 'stream') return stream(plan, request, response)
    if (plan.kind === 'failure' && next) return next(plan.error)
    const answer = await answerTo(hub, plan, request, response, maxBodyBytes)
    if (isFree(response)) sendAnswer(hub, request, response, answer)
  }

  /**
   * Whether this response is still to be answered. A reader that left while its rights were looked up would leave a session that
   * nobody ever ends. A response that another part of the program has answered must not be touched.
   */
  function isFree(response: ServerResponse): boolean {
    if (response.headersSent) hub.port.failed(answeredBefore())
    return !response.headersSent && !hasGone(response)
  }

  function streamOfHub(plan: Plan & { kind: 'stream' }, _request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, plan.headers)
    streamTo(hub, plan.reader, response, { budgetBytes, heads })
  }
}

/** The plan. A body that no plan wants is discarded before it is made: to look up rights may take long. */
export async function whilePlanned(planned: Plan | Promise<Plan>, request: IncomingMessage): Promise<Plan> {
  if (request.method !== 'POST') discardBody(request)
  const plan = await planned
  if (plan.kind === 'stream' || plan.kind === 'poll') discardBody(request)
  return plan
}

// One function for all responses: a closure for each would take memory for as long as the stream is open.
function destroy(this: ServerResponse): void {
  this.destroy()
}

/** The answer that a plan leads to, once the body of a publish is read, or a poll has something to say. */
export function answerTo(
  hub: Hub,
  plan: Exclude<Plan, { kind: 'stream' }>,
  request: IncomingMessage,
  response: ServerResponse,
  maxBodyBytes: number = Number.POSITIVE_INFINITY,
): Answer | Promise<Answer> {
  if (plan.kind === 'poll') return pollFor(hub, plan, request, response)
  if (plan.kind === 'body') return receive(hub, plan, request, maxBodyBytes)
  return plan.answer
}

export interface NodeExchangeOptions {
  readonly sinkBudgetBytes?: number | undefined
  readonly maxBodyBytes?: number | undefined
  /**
   * Carries out a plan to stream, on a response that nothing was sent on.
   * @defaultValue writes the head, and then the bytes of the hub
   */
  readonly stream?:
    | ((plan: Plan & { kind: 'stream' }, request: IncomingMessage, response: ServerResponse) => void)
    | undefined
}

/** Answers with the failure if nothing was sent yet; else cuts the response. */
function giveUp(hub: Hub, request: IncomingMessage, response: ServerResponse, error: unknown): void {
  try {
    if (response.headersSent) response.destroy()
    else sendAnswer(hub, request, response, rejection(error))
  } catch {
    // The cause of the first failure, such as middleware that wraps the response, makes this answer fail too.
    response.destroy()
  }
}

function answeredBefore(): RejoinError {
  return new RejoinError(
    'This request was answered before the hub could answer it. Middleware that answers has to return, and not to call ' +
      'next(); a timeout has to be longer than authorize takes.',
    { code: 'internal' },
  )
}

/** The answer to a poll. The poll is over when its reader has left, and is rejected when its server closes. */
export function pollFor(
  hub: Hub,
  plan: Plan & { kind: 'poll' },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer> {
  const over = new AbortController()
  return new Promise((resolve, reject) => {
    const stopWatching = onceClosing(request.socket, () => {
      resolve(readerRejection({ reason: 'drain', retryMs: hub.admin.retryMs }))
      over.abort()
    })
    onceGone(request, response, () => {
      stopWatching()
      over.abort()
    })
    plan.answer({ signal: over.signal, connection: connectionOf(response) }).then(resolve, reject)
  })
}

async function receive(
  hub: Hub,
  plan: Plan & { kind: 'body' },
  request: IncomingMessage,
  maxBodyBytes: number,
): Promise<Answer> {
  const body = createBodyReader(request, Math.min(plan.maxBytes, maxBodyBytes), hub.port.memory.bodies)
  try {
    return await plan.accept(await body.read())
  } catch (error) {
    discardBody(request)
    return rejection(error)
  } finally {
    body.close()
  }
}
