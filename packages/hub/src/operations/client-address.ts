import type { IncomingMessage } from 'node:http'
import { addressOf } from '../http/request-head.ts'

export interface ProxyTrust {
  /**
   * Whether `X-Forwarded-For` is believed. Set it only behind a proxy of yours. Express has its own setting, `trust proxy`, which
   * counts instead.
   * @defaultValue false
   */
  trustProxy?: boolean | undefined
}

/** The address that a request comes from: the one that Express found, else the one of the connection. */
export function clientAddress(
  request: IncomingMessage & { readonly ip?: string | undefined },
  { trustProxy = false }: ProxyTrust,
): string | null {
  return request.ip ?? addressOf(request, trustProxy)
}
