import type { IncomingMessage } from 'node:http'
import { discardBody } from '@rejoin/hub/internal'
import type { Route } from '../http/routes.ts'
import type { Ticket } from './tickets.ts'

/** `POST /ticket`. It needs no body, and discards one that is sent. */
export function ticketRoute(issue: (request: IncomingMessage) => Promise<Ticket>): Route {
  return {
    method: 'POST',
    path: '/ticket',
    open: 'to-all',
    async handle({ request }) {
      discardBody(request)
      return { status: 201, body: await issue(request) }
    },
  }
}
