import type { IncomingMessage } from 'node:http'
import { discardBody } from '@rejoin/hub/internal'
import { json, type OperationDoc, rejectionDoc } from '../http/openapi.ts'
import type { Route } from '../http/routes.ts'
import type { Ticket } from './tickets.ts'

/** `POST /ticket`. It needs no body, and discards one that is sent. */
export function ticketRoute(issue: (request: IncomingMessage) => Promise<Ticket>): Route {
  return {
    method: 'POST',
    path: '/ticket',
    open: 'to-all',
    doc,
    async handle({ request }) {
      discardBody(request)
      return { status: 201, body: await issue(request) }
    },
  }
}

const doc: OperationDoc = {
  summary: 'Exchange the token of this request for a short-lived ticket, which opens one stream',
  description: 'For a native EventSource, which cannot send a header: `/events/<channel>?ticket=…`.',
  answers: {
    201: json('The ticket. It can be used once.', {
      type: 'object',
      required: ['ticket', 'expiresAt'],
      properties: { ticket: { type: 'string' }, expiresAt: { type: 'number', description: 'ms since 1970' } },
    }),
    401: rejectionDoc,
    503: rejectionDoc,
  },
}
