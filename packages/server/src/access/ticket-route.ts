import type { IncomingMessage, ServerResponse } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import { refuse, refuseMethod } from '../refusal.ts'
import type { Ticket } from './tickets.ts'

/** Answers `POST /ticket`. Needs no body, and throws away the one it gets. */
export function answerTicket(
  request: IncomingMessage,
  response: ServerResponse,
  issue: (request: IncomingMessage) => Promise<Ticket>,
): void {
  request.resume()
  response.setHeader('Cache-Control', 'no-store')
  if (request.method !== 'POST') {
    refuseMethod(response, 'POST')
    return
  }
  void issue(request).then(
    (ticket) => {
      response.writeHead(201, { 'Content-Type': 'application/json; charset=utf-8' })
      response.end(JSON.stringify(ticket))
    },
    (error) => refuseTicket(response, error),
  )
}

function refuseTicket(response: ServerResponse, error: unknown): void {
  if (!(error instanceof RejoinError)) {
    refuse(response, 500, 'internal', 'The hub failed to answer. Try again in a while.')
  } else if (error.code === 'unauthorized') {
    response.setHeader('WWW-Authenticate', 'Bearer')
    refuse(response, 401, error.code, error.message)
  } else {
    response.setHeader('Retry-After', '5')
    refuse(response, 503, error.code, error.message)
  }
}
