import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerCalls } from '../processes/commands.ts'
import { readText } from './post.ts'

// What is left of a return when there is nothing to find out: Node's own server writes bytes that it was given.
const headers = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
  Vary: 'Last-Event-ID, Authorization, Cookie, Origin',
}
const live = new Set<ServerResponse>()
let greeting = Buffer.alloc(0)
let replay = Buffer.alloc(0)

const server = createServer(async (request, response) => {
  if (request.method === 'POST') {
    const frame = `event: tick\ndata: ${await readText(request)}\n\n`
    for (const reader of live) reader.write(frame)
    response.end()
    return
  }
  response.writeHead(200, headers)
  response.write(request.headers['last-event-id'] === undefined ? greeting : replay)
  if (request.url === '/events/live') live.add(response)
  response.on('close', () => live.delete(response))
})

const commands = {
  listen(): Promise<number> {
    return new Promise((resolve) => {
      // As large as the program's, which the system cuts to its own limit.
      const where = { port: 0, host: '127.0.0.1', backlog: 65_535 }
      server.listen(where, () => resolve((server.address() as AddressInfo).port))
    })
  },
  /** What a first reader gets, and what a reader gets that comes back. */
  hold(bytes: { readonly greeting: string; readonly replay: string }): void {
    greeting = Buffer.from(bytes.greeting)
    replay = Buffer.from(bytes.replay)
  },
}

export type BareReplayCommands = typeof commands

answerCalls(commands)
