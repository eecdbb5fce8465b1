import type { Server, Socket } from 'node:net'

/** A stream or a poll. Its server waits for it before the server reports that it has closed. */
export interface Carried {
  /** Called when the server begins to close. */
  closing(): void
}

/**
 * Tells `carried` when the server of this connection begins to close, until `unwatchClosing`.
 *
 * A closing server waits for its connections, and a stream never ends by itself: they would wait for each other. Node has no
 * event for the beginning of a close, so a server that carries streams is checked every 100 ms. A server that never listened,
 * because its connections are handed to it, is not watched.
 */
export function watchClosing(socket: Socket | undefined, carried: Carried): void {
  const server = serverOf(socket)
  if (server) watchOf(server)?.carried.add(carried)
}

export function unwatchClosing(socket: Socket | undefined, carried: Carried): void {
  const server = serverOf(socket)
  if (server) watches.get(server)?.carried.delete(carried)
}

/** Calls `listener` when the server of this connection begins to close, until the returned function is called. */
export function onceClosing(socket: Socket | undefined, listener: () => void): () => void {
  const carried = { closing: listener }
  watchClosing(socket, carried)
  return () => unwatchClosing(socket, carried)
}

function serverOf(socket: Socket | undefined): Server | undefined {
  return (socket as { server?: Server } | undefined)?.server
}

interface Watch {
  readonly carried: Set<Carried>
  timer: NodeJS.Timeout | undefined
}

// How late a stream may learn of the close. Operators give a process several seconds to end.
const checkEveryMs = 100
const watches = new WeakMap<Server, Watch>()

function watchOf(server: Server): Watch | undefined {
  let watch = watches.get(server)
  if (!watch) {
    if (!server.listening) return undefined
    watch = { carried: new Set(), timer: undefined }
    watches.set(server, watch)
  }
  watch.timer ??= setInterval(checkServer, checkEveryMs, server, watch).unref()
  return watch
}

function checkServer(server: Server, watch: Watch): void {
  const { carried } = watch
  if (!server.listening) {
    for (const each of [...carried]) each.closing()
    carried.clear()
  }
  if (carried.size > 0) return
  clearInterval(watch.timer)
  watch.timer = undefined
}
