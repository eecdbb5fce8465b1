import type { IncomingMessage } from 'node:http'
import type { Grant } from '../hub/readers/grant.ts'
import { parseTarget, type Target, targetOf } from './target.ts'

/** The parts of a request that routing needs. Every HTTP framework can give them. */
export interface RequestHead {
  readonly method: string
  readonly target: Target
  /** The prefix of the hub's own paths; left out, there is none. */
  readonly basePath?: string
  /** Value of the header with this lower-case name. */
  header(name: string): string | undefined
  /**
   * Who is at the other end. A function, because it runs code of the framework and of the program: an error that it throws while
   * the plan is made is answered like any other failure.
   */
  peer(): Peer
  /** Asks the program for the requester's rights; undefined when everybody may do everything. */
  readonly authorize: (() => Grant | null | Promise<Grant | null>) | undefined
  /** Asks the program for how many milliseconds a publisher has to wait; undefined without a limit. */
  readonly rateLimit: ((subject: string | null) => number) | undefined
}

export interface Peer {
  /** The peer's address; undefined, null or '' when it is unknown, as after the connection was reset. */
  readonly ip: string | null | undefined
  /** Whether the peer is a proxy of ours: then its `X-Forwarded-…` headers are believed. */
  readonly trusted: boolean
}

/** The head of a Node request, as routing needs it. */
export function nodeHead(request: IncomingMessage): Pick<RequestHead, 'method' | 'target' | 'header'> {
  return {
    method: request.method ?? 'GET',
    target: targetOf(request),
    header(name) {
      const value = request.headers[name]
      return Array.isArray(value) ? value.join(', ') : value
    },
  }
}

/** The address of the connection; undefined for an HTTP/2 request that is over, because it has no socket any more. */
export function nodeAddress(request: IncomingMessage): string | undefined {
  return request.socket?.remoteAddress
}

/** The head of a request of the fetch standard, as routing needs it. */
export function fetchHead({ method, url, headers }: Request): Pick<RequestHead, 'method' | 'target' | 'header'> {
  return { method, target: parseTarget(url), header: (name) => headers.get(name) ?? undefined }
}

/** Who sent a request: the address that a trusted proxy gives, else the address of the connection. */
export function peerOf({ header }: Pick<RequestHead, 'header'>, ip: Peer['ip'], trustProxy = false): Peer {
  // Our own proxy added the last address. The addresses before it may be invented. An empty header says nothing.
  const forwarded = trustProxy ? header('x-forwarded-for')?.split(',').at(-1)?.trim() : undefined
  return { ip: forwarded || ip, trusted: trustProxy }
}

/** The address that a Node request came from; null when its connection is gone. */
export function addressOf(request: IncomingMessage, trustProxy: boolean): string | null {
  const address = nodeAddress(request)
  return (trustProxy ? peerOf(nodeHead(request), address, trustProxy).ip : address) || null
}
