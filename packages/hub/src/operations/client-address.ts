import type { IncomingMessage } from 'node:http'
import { addressOf } from '../http/peer.ts'

export interface ProxyTrust {
  /**
   * Whether `X-Forwarded-For` may be believed. Express knows by its setting `trust proxy`, and need not be told.
   * @defaultValue false
   */
  trustProxy?: boolean
}

/** Where a request comes from: what Express found out, or else what the connection says. */
export function clientAddress(
  request: IncomingMessage & { readonly ip?: string | undefined },
  { trustProxy = false }: ProxyTrust,
): string | null {
  return request.ip ?? addressOf(request, trustProxy)
}
