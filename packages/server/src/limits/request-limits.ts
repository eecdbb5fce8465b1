import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { ErrorCode } from '@rejoin/protocol'
import { doorOf, publisherDoors, readerDoors } from '../doors.ts'
import { refuse } from '../refusal.ts'
import { requestTarget } from '../request-target.ts'
import type { Rejection, RequestLimits } from './options.ts'

/** Stands right before the hub and refuses what is too much for one request. */
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

  function limitPublish(request: IncomingMessage, response: ServerResponse): void {
    const length = request.headers['content-length']
    if (Number(length) > maxBodyBytes) {
      rejectBody(request, response)
      return
    }
    // How long it is, only the hub will see, once it knows whose it is.
    if (length === undefined) response.once('close', () => response.statusCode === 413 && context.onReject('body'))
    hub(request, response)
  }

  return (request, response) => {
    if (request.method === 'POST' && publisherDoors.has(doorOf(request))) {
      limitPublish(request, response)
    } else if (maxChannels < mostChannels && channelsAsked(request) > maxChannels) {
      reject(response, 400, 'channels', `A stream has at most ${maxChannels} channels here. Open another one.`)
    } else {
      hub(request, response)
    }
  }
}

export interface LimitContext {
  onReject(kind: Rejection): void
}

// What a hub takes at most (§5.1), and what a subscription of it has.
const mostBodyBytes = 262_144
const mostChannels = 100

const codes = { body: 'too-large', channels: 'invalid-channel' } satisfies Partial<Record<Rejection, ErrorCode>>

function channelsAsked(request: IncomingMessage): number {
  const { path, query } = requestTarget(request)
  const [, door = '', name = ''] = path.split('/', 3)
  if (!readerDoors.has(door)) return 0
  return (name === '' ? 0 : 1) + query().getAll('channel').length
}
