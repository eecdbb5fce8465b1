import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers the preflight that a browser sends before a page's request; false when the request is no preflight. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return false
  response.writeHead(204, preflightHeaders).end()
  return true
}

const preflightHeaders = {
  'Access-Control-Allow-Methods': 'GET, POST, DELETE',
  'Access-Control-Allow-Headers': 'Last-Event-ID, Content-Type, Authorization, Cache-Control, Idempotency-Key',
  // Ten minutes: reconnects need no preflight, and a changed rule takes effect soon. Chromium keeps one for two hours at most.
  'Access-Control-Max-Age': '600',
}
