import type { Server, Socket } from 'node:net'

/**
 * Calls `listener` when the server that a connection came through is being closed, until the returned function is called.
 *
 * A server waits for its connections before it says that it has closed, and a stream has no end of its own: each waits for the
 * other. Node has no event for the beginning of a close, so a server that carries streams is looked at now and then. One that
 * never listened, because its connections are handed to it, is never closing.
 */
export function onceClosing(socket: Socket | undefined, listener: () => void): () => void {
  const { server } = (socket ?? {}) as { server?: Server }
  if (!server) return () => undefined
  const watch = watchOf(server)
  watch?.listeners.add(listener)
  return () => void watch?.listeners.delete(listener)
}

interface Watch {
  readonly listeners: Set<() => void>
  timer: NodeJS.Timeout | undefined
}

// How late a stream may learn of it; nothing against the seconds that an operator gives a process to end.
const lookEveryMs = 100
const watches = new WeakMap<Server, Watch>()

function watchOf(server: Server): Watch | undefined {
  let watch = watches.get(server)
  if (!watch) {
    if (!server.listening) return undefined
    watch = { listeners: new Set(), timer: undefined }
    watches.set(server, watch)
  }
  watch.timer ??= setInterval(look, lookEveryMs, server, watch).unref()
  return watch
}

function look(server: Server, watch: Watch): void {
  const { listeners } = watch
  if (!server.listening) {
    for (const listener of [...listeners]) listener()
    listeners.clear()
  }
  if (listeners.size > 0) return
  clearInterval(watch.timer)
  watch.timer = undefined
}
