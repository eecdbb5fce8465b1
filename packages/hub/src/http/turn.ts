import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { resetSocket } from './reset.ts'

/**
 * Resolves when a response is the next one on its connection. That is at once, unless its request was pipelined (RFC 9112,
 * section 9.3.2) behind another whose answer is not out yet. Without the wait, a thousand pipelined polls, or streams behind one
 * that never ends, would all have their answers in memory. No browser and no proxy pipelines, so a connection with more than 32
 * requests in wait is cut.
 */
export async function inTurn({ socket }: IncomingMessage, response: ServerResponse): Promise<void> {
  if (response.socket !== null) return
  const waiting = (waitingOn.get(socket) ?? 0) + 1
  waitingOn.set(socket, waiting)
  if (waiting === maxWaiting + 1) resetSocket(socket)
  // Never resolves when the connection is lost first: then there is nobody to answer, and nothing to undo.
  await new Promise((resolve) => response.once('socket', resolve))
  waitingOn.set(socket, (waitingOn.get(socket) ?? 0) - 1)
}

const maxWaiting = 32
const waitingOn = new WeakMap<Socket, number>()
