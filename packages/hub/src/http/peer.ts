import type { Peer, RequestHead } from './route.ts'

/** Who is at the other end: the proxy's word for it, if that may be believed, else the address that the connection has. */
export function peerOf({ header }: Pick<RequestHead, 'header'>, ip: Peer['ip'], trustProxy = false): Peer {
  // The last address is the one that our own proxy has added; those before it are what it was told.
  const forwarded = trustProxy ? header('x-forwarded-for')?.split(',').at(-1)?.trim() : undefined
  return { ip: forwarded ?? ip, trusted: trustProxy }
}
