import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { resetSocket } from './reset.ts'

/**
 * Resolves when a response is the next one on its connection: at once, unless its request was pipelined behind another
 * (RFC 9112, section 9.3.2) whose answer is not out yet. Begun earlier, the answers to a thousand pipelined polls would all
 * be in memory, and so would a thousand streams behind a first one that never ends. No browser and no proxy pipelines, so a
 * connection with many requests in wait is cut.
 */
export async function inTurn({ socket }: IncomingMessage, response: ServerResponse): Promise<void> {
  if (response.socket !== null) return
  const waiting = (waitingOn.get(socket) ?? 0) + 1
  waitingOn.set(socket, waiting)
  if (waiting === maxWaiting + 1) resetSocket(socket)
  // Never, when the connection is lost before: then there is nobody to answer, and nothing that would have to be undone.
  await new Promise((resolve) => response.once('socket', resolve))
  waitingOn.set(socket, (waitingOn.get(socket) ?? 0) - 1)
}

const maxWaiting = 32
const waitingOn = new WeakMap<Socket, number>()
