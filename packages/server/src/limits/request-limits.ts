import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { ErrorCode } from '@rejoin/protocol'
import { refuse } from '../refusal.ts'
import { doorOf, requestTarget } from '../request-target.ts'
import type { Rejection, RequestLimits } from './options.ts'
import type { PublishRate } from './publish-rate.ts'

/** Stands right before the hub and refuses what is too much for one request, or for one who need not say who they are. */
export function limitRequests(limits: RequestLimits, context: LimitContext, hub: RequestListener): RequestListener {
  const { maxChannels = mostChannels, maxBodyBytes = mostBodyBytes } = limits

  function reject(response: ServerResponse, status: number, kind: keyof typeof codes, message: string): void {
    context.onReject(kind)
    refuse(response, status, codes[kind], message)
  }

  function rejectBody(request: IncomingMessage, response: ServerResponse): void {
    // The rest is read and thrown away, or it would block the next request on this connection.
    request.resume()
    reject(response, 413, 'body', `The body is over ${maxBodyBytes} bytes. Publish a reference to large data instead.`)
  }

  function rejectTooFast(request: IncomingMessage, response: ServerResponse, waitMs: number): void {
    const seconds = Math.ceil(waitMs / 1000)
    response.setHeader('Retry-After', String(seconds))
    request.resume()
    refuse(response, 429, 'overloaded', `You publish too fast. Wait for ${seconds} s, or send batches.`)
  }

  function limitPublish(request: IncomingMessage, response: ServerResponse): void {
    const length = request.headers['content-length']
    if (Number(length) > maxBodyBytes) {
      rejectBody(request, response)
      return
    }
    const waitMs = context.rate?.(request) ?? 0
    if (waitMs > 0) {
      rejectTooFast(request, response, waitMs)
      return
    }
    // How long it is, only the hub will see, once it knows whose it is.
    if (length === undefined) response.once('close', () => response.statusCode === 413 && context.onReject('body'))
    hub(request, response)
  }

  return (request, response) => {
    if (request.method === 'POST' && isPublish(request)) {
      limitPublish(request, response)
    } else if (maxChannels < mostChannels && channelsAsked(request) > maxChannels) {
      reject(response, 400, 'channels', `A stream has at most ${maxChannels} channels here. Open another one.`)
    } else {
      hub(request, response)
    }
  }
}

export interface LimitContext {
  /** Where everybody may publish; where there are access rules, they tell (`paced`). */
  readonly rate?: PublishRate | undefined
  onReject(kind: Rejection): void
}

// What a hub takes at most (§5.1), and what a subscription of it has.
export const mostBodyBytes = 262_144
const mostChannels = 100

const codes = { body: 'too-large', channels: 'invalid-channel' } satisfies Partial<Record<Rejection, ErrorCode>>

/** To end a channel is to publish its last event. */
function isPublish(request: IncomingMessage): boolean {
  const door = doorOf(request)
  return door === 'publish' || door === 'end'
}

function channelsAsked(request: IncomingMessage): number {
  const { path, query } = requestTarget(request)
  const [, door, name = ''] = path.split('/', 3)
  if (door !== 'events' && door !== 'stream' && door !== 'poll') return 0
  return (name === '' ? 0 : 1) + query().getAll('channel').length
}
