import type { Server, Socket } from 'node:net'

/** Something that a server waits for before it says that it has closed. */
export interface Carried {
  /** The server is being closed. */
  closing(): void
}

/**
 * Tells `carried` when the server that a connection came through is being closed, until `unwatchClosing`.
 *
 * A server waits for its connections before it says that it has closed, and a stream has no end of its own: each waits for the
 * other. Node has no event for the beginning of a close, so a server that carries streams is checked now and then. One that
 * never listened, because its connections are handed to it, is never closing.
 */
export function watchClosing(socket: Socket | undefined, carried: Carried): void {
  const server = serverOf(socket)
  if (server) watchOf(server)?.carried.add(carried)
}

export function unwatchClosing(socket: Socket | undefined, carried: Carried): void {
  const server = serverOf(socket)
  if (server) watches.get(server)?.carried.delete(carried)
}

/** Calls `listener` when that server is being closed, until the returned function is called. */
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

// How late a stream may learn of it; nothing against the seconds that an operator gives a process to end.
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
