import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Grant } from '@rejoin/hub'
import type { ErrorCode } from '@rejoin/protocol'
import { refuse } from '../refusal.ts'
import { requestTarget } from '../request-target.ts'
import { readBody } from './body.ts'
import type { Rejection, RequestLimits } from './options.ts'
import { createTokenBuckets } from './token-bucket.ts'

/**
 * Stands right before the hub and refuses what is too much for one request or one publisher. Unlike middleware it may take
 * its time: who publishes has to be known first.
 */
export function limitRequests(limits: RequestLimits, context: LimitContext, hub: RequestListener): RequestListener {
  const { maxChannels = mostChannels, maxBodyBytes = mostBodyBytes, maxPublishesPerSecond: perSecond } = limits
  const buckets = perSecond
    ? createTokenBuckets({ perSecond, burst: limits.publishBurst ?? perSecond, now: context.now })
    : undefined

  function reject(response: ServerResponse, status: number, kind: keyof typeof codes, message: string): void {
    context.onReject(kind)
    refuse(response, status, codes[kind], message)
  }

  function rejectBody(request: IncomingMessage, response: ServerResponse): void {
    // The rest is read and thrown away, or it would block the next request on this connection.
    request.resume()
    reject(response, 413, 'body', `The body is over ${maxBodyBytes} bytes. Publish a reference to large data instead.`)
  }

  async function limitPublish(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const waitMs = buckets ? buckets.take(await publisherOf(request, context)) : 0
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1000)
      response.setHeader('Retry-After', String(seconds))
      request.resume()
      reject(response, 429, 'publish-rate', `You publish too fast. Wait for ${seconds} s, or send batches.`)
      return
    }
    const body = hasLength(request) ? 'read' : await readBody(request, maxBodyBytes)
    if (body === 'over') rejectBody(request, response)
    else if (body === 'read') hub(request, response)
  }

  return (request, response) => {
    if (request.method === 'POST' && isPublish(request)) {
      if (Number(request.headers['content-length']) > maxBodyBytes) rejectBody(request, response)
      else if (!buckets && hasLength(request)) hub(request, response)
      else void limitPublish(request, response)
    } else if (maxChannels < mostChannels && channelsAsked(request) > maxChannels) {
      reject(response, 400, 'channels', `A stream has at most ${maxChannels} channels here. Open another one.`)
    } else {
      hub(request, response)
    }
  }
}

export interface LimitContext {
  /** Who sent a request; left out, there are no access rules. Asked once more by the hub. */
  authorize?: ((request: IncomingMessage) => Promise<Grant | null>) | undefined
  /** The address that a request came from. */
  addressOf(request: IncomingMessage): string | null
  onReject(kind: Rejection): void
  now(): number
}

// What a hub takes at most (§5.1), and what a subscription of it has.
const mostBodyBytes = 262_144
const mostChannels = 100

const codes = { body: 'too-large', channels: 'invalid-channel', 'publish-rate': 'overloaded' } satisfies Partial<
  Record<Rejection, ErrorCode>
>

/** Whose bucket a publish takes from. */
async function publisherOf(request: IncomingMessage, { authorize, addressOf }: LimitContext): Promise<string> {
  const address = `address ${addressOf(request)}`
  try {
    const grant = await authorize?.(request)
    // Those who present nothing have no subject, and would all share one bucket.
    return typeof grant?.subject === 'string' ? `subject ${grant.subject}` : address
  } catch {
    // What is wrong with it is for the hub to say, which asks again.
    return address
  }
}

/** To end a channel is to publish its last event. */
function isPublish(request: IncomingMessage): boolean {
  const { path } = requestTarget(request)
  return path === '/publish' || path.startsWith('/publish/') || path.startsWith('/end/')
}

function hasLength(request: IncomingMessage): boolean {
  return request.headers['content-length'] !== undefined
}

function channelsAsked(request: IncomingMessage): number {
  const { path, query } = requestTarget(request)
  const [, door, name = ''] = path.split('/', 3)
  if (door !== 'events' && door !== 'stream' && door !== 'poll') return 0
  return (name === '' ? 0 : 1) + query().getAll('channel').length
}
