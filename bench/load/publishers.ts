import { connect, type Socket } from 'node:net'
import { answerCalls } from '../processes/commands.ts'

/** The process that publishes over HTTP as fast as it is answered. */
export interface PublishRun {
  readonly port: number
  readonly connections: number
  /** Events per request; one is a plain body, more are a JSON batch. */
  readonly batch: number
  readonly eventBytes: number
  /** Sent as a bearer token. */
  readonly token?: string
  readonly warmUpMs: number
  readonly ms: number
}

export interface Published {
  readonly eventsPerSecond: number
  /** Those of the warm-up included. */
  readonly events: number
  readonly p50Ms: number
  readonly p99Ms: number
}

const commands = {
  async publish(run: PublishRun): Promise<Published> {
    const request = requestOf(run)
    const took: number[] = []
    let measuring = false
    let requests = 0
    const sockets = Array.from({ length: run.connections }, () => publishAgainAndAgain(run.port, request, record))
    function record(ms: number): void {
      requests += 1
      if (measuring) took.push(ms)
    }

    await new Promise((resolve) => setTimeout(resolve, run.warmUpMs))
    measuring = true
    const started = performance.now()
    await new Promise((resolve) => setTimeout(resolve, run.ms))
    const seconds = (performance.now() - started) / 1000
    for (const socket of sockets) socket.destroy()
    took.sort((a, b) => a - b)
    return {
      eventsPerSecond: (took.length * run.batch) / seconds,
      events: requests * run.batch,
      p50Ms: took[Math.floor(took.length / 2)]!,
      p99Ms: took[Math.floor(took.length * 0.99)]!,
    }
  },
}

export type PublisherCommands = typeof commands

answerCalls(commands)

function requestOf({ batch, eventBytes, token }: PublishRun): Buffer {
  const text = 'x'.repeat(eventBytes)
  const event = { channel: 'bench', type: 'tick', text }
  const [path, body] =
    batch === 1 ? ['/publish/bench?type=tick', text] : ['/publish', JSON.stringify(Array(batch).fill(event))]
  const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}` +
    `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n`
  return Buffer.from(head + body)
}

/** One request at a time on one connection, each sent when the one before it was answered. */
function publishAgainAndAgain(port: number, request: Buffer, record: (ms: number) => void): Socket {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  let text = ''
  let sent = performance.now()
  socket.setEncoding('latin1')
  socket.on('connect', () => socket.write(request))
  socket.on('data', (part: string) => {
    text += part
    const head = text.indexOf('\r\n\r\n')
    if (head === -1) return
    if (!text.startsWith('HTTP/1.1 201')) throw new Error(`a publish was answered with ${text}`)
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1])
    if (text.length < head + 4 + length) return
    text = ''
    const now = performance.now()
    record(now - sent)
    sent = now
    socket.write(request)
  })
  return socket
}
