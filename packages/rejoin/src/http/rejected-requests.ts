import type { IncomingMessage, ServerResponse } from 'node:http'
import { addressOf, asksForEvents, namedSelectors, targetOf } from '@rejoin/hub/internal'
import type { RejectedRequest } from '@rejoin/hub/operations'
import type { Middleware } from './chain.ts'

/**
 * Reports requests that the program rejects before the hub has seen them: of readers for any reason, of others when they lack the
 * right. Stands first in the chain. The hub reports its own rejections.
 */
export function watchRejections({ trustProxy, tell }: RejectionsOptions): Middleware {
  // One function for all requests: a closure for each would cost 1 µs.
  function told(this: ServerResponse, reason: string, status: number): void {
    const { req: request } = this
    const { rest, query } = targetOf(request)
    const { origin, 'user-agent': userAgent = null } = request.headers
    const action = actionOf(request)
    if (action !== undefined && !isForRights(reason)) return
    tell({
      ip: addressOf(request, trustProxy),
      userAgent,
      subject: null,
      channels: namedSelectors(rest, query),
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
  /** Whether `X-Forwarded-For` is believed. */
  readonly trustProxy: boolean
  tell(request: RejectedRequest): void
}

/** Whether the requester lacked a right. Any other rejection is counted by the limit that made it. */
export function isForRights(reason: string): boolean {
  return rightsReasons.has(reason)
}

const rightsReasons: ReadonlySet<string> = new Set(['unauthorized', 'forbidden', 'origin', 'host'])

/** The kind under which a rejection is counted. Preflights and tickets have a kind of their own, whatever their reason. */
export function rejectionKind({ action, reason }: Pick<RejectedRequest, 'action' | 'reason'>): string {
  return action === 'preflight' || action === 'ticket' ? action : reason
}

/** What the request wants to do; undefined for a reader. */
function actionOf(request: IncomingMessage): string | undefined {
  const { endpoint } = targetOf(request)
  if (request.method === 'OPTIONS') return 'preflight'
  if (asksForEvents(request)) return undefined
  return actions.has(endpoint) ? endpoint : 'other'
}

// A closed list, because a client can send any path.
const actions: ReadonlySet<string> = new Set(['publish', 'end', 'channels', 'ticket', 'admin', 'metrics', 'log'])
