import type { IncomingMessage, ServerResponse } from 'node:http'
import { addressOf, isReaderEndpoint, targetOf } from '@rejoin/hub/internal'
import type { RejectedRequest } from '@rejoin/hub/operations'
import type { Middleware } from './middleware.ts'

/**
 * Tells of requests that the program rejects before the hub has seen them: readers for any reason, others when they lack the
 * right. Stands first in the chain. The hub tells of the others by itself.
 */
export function watchRejections({ trustProxy, tell }: RejectionsOptions): Middleware {
  // One function for all: a new one for each request would cost 1 µs.
  function told(this: ServerResponse, reason: string, status: number): void {
    const { req: request } = this
    const { rest, query } = targetOf(request)
    const { origin, 'user-agent': userAgent = null } = request.headers
    const action = actionOf(request)
    if (action !== undefined && !isRefusal(reason)) return
    tell({
      ip: addressOf(request, trustProxy),
      userAgent,
      subject: null,
      channels: [...(rest === '' ? [] : [rest]), ...query.getAll('channel')],
      reason,
      status,
      ...(action === undefined ? {} : { action }),
      ...(origin === undefined ? {} : { origin }),
    })
  }

  return (_request, response) => {
    response.on('rejected', told)
    return false
  }
}

export interface RejectionsOptions {
  /** Whether `X-Forwarded-For` can be believed. */
  readonly trustProxy: boolean
  tell(request: RejectedRequest): void
}

/** Whether the requester lacked a right. Other rejections of the program are counted by what has rejected. */
export function isRefusal(reason: string): boolean {
  return refusals.has(reason)
}

const refusals: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'origin', 'host'])

/** What a rejection counts as: preflights and tickets are told apart, whatever was wrong with them. */
export function rejectionKind({ action, reason }: Pick<RejectedRequest, 'action' | 'reason'>): string {
  return action === 'preflight' || action === 'ticket' ? action : reason
}

/** Undefined for a reader. */
function actionOf(request: IncomingMessage): string | undefined {
  const { endpoint } = targetOf(request)
  if (request.method === 'OPTIONS') return 'preflight'
  if (request.method === 'GET' && isReaderEndpoint(endpoint)) return undefined
  return actions.has(endpoint) ? endpoint : 'other'
}

// Of a closed list: a path is anybody's to choose.
const actions: ReadonlySet<string> = new Set(['publish', 'end', 'channels', 'ticket', 'admin', 'metrics', 'log'])
