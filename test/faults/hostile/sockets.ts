import { connect, type Socket } from 'node:net'
import type { Target } from './attack.ts'

// Another address than that of the honest readers, so that a limit per address is one for the attacker alone.
const localAddress = '127.0.0.2'

/** A connection that sends `text` and reads nothing, until it is told to. */
export function openUnread({ port }: Target, text: string, address = localAddress): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: address })
  socket.on('error', () => socket.destroy())
  socket.pause()
  socket.write(text)
  return socket
}

/** Sends a request on a connection of its own. Resolves with the first bytes of the answer, '' for none, and resets it. */
export function askOnce(target: Target, text: string, address = localAddress): Promise<string> {
  return new Promise((resolve) => {
    const socket = openUnread(target, text, address)
    let answer = ''
    socket.once('data', (part) => {
      answer = part.toString('latin1')
      socket.resetAndDestroy()
    })
    socket.once('close', () => resolve(answer))
    socket.setTimeout(10_000, () => socket.destroy())
    socket.resume()
  })
}

/** Does something again and again, `count` times at once, until it is stopped. */
export async function keepDoing(
  { strength }: Target,
  count: number,
  stop: AbortSignal,
  once: () => Promise<unknown>,
): Promise<void> {
  const loops = Array.from({ length: Math.ceil(count * strength) }, async () => {
    while (!stop.aborted) {
      await once()
      // A rejected connection is over in the same turn: without a turn in between, this process would do nothing else.
      await new Promise(setImmediate)
    }
  })
  await Promise.all(loops)
}

/** Keeps `count` connections open until it is stopped; one that the hub has closed is opened anew. */
export async function keepOpen(
  { strength }: Target,
  count: number,
  stop: AbortSignal,
  open: () => Socket,
): Promise<void> {
  const sockets = new Set<Socket>()
  function add(): void {
    const socket = open()
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      // Not at once: a hub that closes connections is not to be outrun by the attacker's own loop.
      if (!stop.aborted) setTimeout(() => stop.aborted || add(), 250)
    })
  }
  for (let n = 0; n < count * strength; n += 1) {
    add()
    if (n % 50 === 49) await new Promise((soon) => setTimeout(soon, 10))
    if (stop.aborted) break
  }
  if (!stop.aborted) await new Promise((stopped) => stop.addEventListener('abort', stopped, { once: true }))
  for (const socket of sockets) socket.resetAndDestroy()
}

export function get(path: string, headers: readonly string[] = []): string {
  return `${[`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...headers].join('\r\n')}\r\n\r\n`
}

export function post(path: string, body: string, headers: readonly string[] = []): string {
  const lines = [`POST ${path} HTTP/1.1`, 'Host: 127.0.0.1', `Content-Length: ${body.length}`, ...headers]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
