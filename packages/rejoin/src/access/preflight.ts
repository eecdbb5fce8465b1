import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers the question that a browser asks before a page's request; false when it is none. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false
  response.writeHead(204, preflightHeaders).end()
  return true
}

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, POST, DELETE',
  'Access-Control-Allow-Headers': 'Last-Event-ID, Content-Type, Authorization, Cache-Control, Idempotency-Key',
  // Chromium keeps a preflight no longer than two hours; ten minutes spares the reconnects and forgets a changed rule.
  'Access-Control-Max-Age': '600',
}
