import type { ServerResponse } from 'node:http'
import type { ErrorCode } from '@rejoin/protocol'

/** Answers with the JSON object that every refusal of Rejoin is (§5.7), and ends the response. */
export function refuse(response: ServerResponse, status: number, code: ErrorCode, message: string): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'X-Content-Type-Options': 'nosniff' })
  response.end(JSON.stringify({ error: { code, message } }))
}

/** The refusal of a method that the path does not take; `allowed` is what it does. */
export function refuseMethod(response: ServerResponse, ...allowed: string[]): void {
  response.setHeader('Allow', allowed.join(', '))
  refuse(response, 405, 'wrong-method', `This path takes ${allowed.join(' and ')} only.`)
}
