import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Bounds the requests that wait behind others on one HTTP/1 connection. Node hands over all requests of one packet, perhaps
 * hundreds, within one turn. No browser and no proxy pipelines, so a connection with more than 32 in wait is cut, and its further
 * requests are ignored. Publishes are not counted: their bodies have a bound of their own.
 *
 * @returns whether to go on with a request
 */
export function limitPipelined(onReject: (kind: 'pipelined') => void) {
  const waiting = new WeakMap<Socket, number>()

  return (request: IncomingMessage, response: ServerResponse): boolean => {
    // Over HTTP/2 each response has a stream of its own.
    if (request.httpVersionMajor !== 1) return true
    const { socket } = request
    if (socket.destroyed) return false
    if (response.socket !== null || request.method === 'POST') return true
    const count = (waiting.get(socket) ?? 0) + 1
    waiting.set(socket, count)
    if (count > maxWaiting) {
      onReject('pipelined')
      socket.destroy()
      return false
    }
    response.once('close', () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1))
    return true
  }
}

const maxWaiting = 32
