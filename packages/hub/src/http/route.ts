import type { Hub, SubscribeRequest } from '../hub/hub.ts'
import { type Answer, jsonAnswer, refusal } from './answer.ts'
import { maxBodyBytes, publishBody } from './publish.ts'
import { readSubscription, streamHeaders } from './subscribe.ts'
import { below, parseTarget } from './target.ts'

/** A request, as far as routing needs it: what every HTTP framework can tell. */
export interface RequestHead {
  readonly method: string
  /** Path and query. */
  readonly url: string
  /** Value of the header with this lower-case name. */
  header(name: string): string | undefined
}

/**
 * What to do with a request: answer it, stream to it, or read its body first. An adapter carries it out in its framework's
 * terms and decides nothing.
 */
export type Plan =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | {
      readonly kind: 'stream'
      readonly headers: Readonly<Record<string, string>>
      readonly subscribe: SubscribeRequest
    }
  | { readonly kind: 'body'; readonly maxBytes: number; accept(body: Uint8Array): Promise<Answer> }

/** The plan for a request, undefined when its path is none of the hub's. */
export function route(hub: Hub, request: RequestHead): Plan | undefined {
  const target = parseTarget(request.url)
  const stream = below('events', target.path) ?? below('stream', target.path)
  if (stream !== undefined) {
    if (request.method === 'HEAD') return { kind: 'answer', answer: { status: 200, headers: streamHeaders, body: '' } }
    if (request.method !== 'GET') return wrongMethod('GET')
    try {
      return { kind: 'stream', headers: streamHeaders, subscribe: readSubscription(stream, target, request.header) }
    } catch (error) {
      return { kind: 'answer', answer: refusal(error) }
    }
  }
  const channel = below('publish', target.path)
  if (channel !== undefined) {
    if (request.method !== 'POST') return wrongMethod('POST')
    const accept = (body: Uint8Array) => publishBody(hub, channel, target, body).catch(refusal)
    return { kind: 'body', maxBytes: maxBodyBytes, accept }
  }
  return undefined
}

function wrongMethod(allowed: string): Plan {
  const error = { code: 'not-found', message: `This path takes ${allowed} only.` }
  return { kind: 'answer', answer: jsonAnswer(405, { error }, { Allow: allowed }) }
}
