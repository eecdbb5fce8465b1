import type { IncomingMessage } from 'node:http'
import { nodeAddress, nodeHead } from './node-head.ts'
import type { Peer, RequestHead } from './route.ts'

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
