import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { countFrames, type FrameCount, type Stride } from './frame-count.ts'
import { createSamples, type LatencySummary } from './samples.ts'

export interface ReadersOptions {
  readonly port: number
  readonly tls: boolean
  readonly count: number
  /** What each asks for; `{n}` stands for the reader's number. */
  readonly path: string
  /** Their numbers start again after that many. */
  readonly numbers?: number
}

/** Connections that read an event stream, on raw sockets: an HTTP client would cost more than what it measures. */
export interface Readers {
  /** Throws when a connection has ended: figures without it would be of another bench. */
  totals(): { events: number; bytes: number }
  clearLatency(): void
  latency(): LatencySummary
  /** They read no further. */
  stall(): void
  /** They read on. */
  resume(): void
  close(): void
}

// Enough for a p99 of a thousand readers, few enough that reading clocks and digits does not show.
const samplers = 50
// Under the backlog of a listening socket of Node, 511: a SYN that is dropped comes again after a second.
const connectingAtOnce = 200

/** Connects all readers and waits until each has been answered. */
export async function openReaders(options: ReadersOptions): Promise<Readers> {
  const samples = createSamples()
  const stride: Stride = { frameBytes: 0 }
  // All sockets read into the same memory, because what was read is looked at before anything else is read.
  const buffer = Buffer.alloc(64 * 1024)
  const readers: Reader[] = []
  let lost: Error | undefined
  const sampleEvery = Math.max(1, Math.floor(options.count / samplers))

  async function connectShare(): Promise<void> {
    while (readers.length < options.count) {
      const number = readers.length
      const onAge = number % sampleEvery === 0 ? samples.add : undefined
      const frames: FrameCount = { events: 0, bytes: 0, skip: 0, onAge }
      const reader = { frames, socket: undefined as unknown as Socket }
      readers.push(reader)
      await new Promise<void>((resolve, reject) => {
        reader.socket = connectReader(options, number % (options.numbers ?? options.count), buffer, {
          onBytes: (length) => countFrames(frames, stride, buffer, length),
          onAnswer: resolve,
          onEnd(error) {
            lost ??= error
            reject(error)
          },
        })
      })
    }
  }
  await Promise.all(Array.from({ length: connectingAtOnce }, connectShare))

  return {
    totals() {
      if (lost) throw lost
      let events = 0
      let bytes = 0
      for (const { frames } of readers) {
        events += frames.events
        bytes += frames.bytes
      }
      return { events, bytes }
    },
    clearLatency: samples.clear,
    latency: samples.summary,
    stall() {
      for (const { socket } of readers) socket.pause()
    },
    resume() {
      for (const { socket } of readers) socket.resume()
    },
    close() {
      for (const { socket } of readers) socket.destroy()
    },
  }
}

interface Reader {
  readonly frames: FrameCount
  socket: Socket
}

interface ReaderEvents {
  onBytes(length: number): void
  onAnswer(): void
  onEnd(error: Error): void
}

function connectReader(options: ReadersOptions, number: number, buffer: Buffer, events: ReaderEvents): Socket {
  const { port, tls, path } = options
  let answered = false
  const onread = {
    buffer,
    callback(length: number): boolean {
      if (!answered) {
        answered = true
        const status = buffer.toString('latin1', 0, Math.min(length, 15))
        if (status.startsWith('HTTP/1.1 200')) events.onAnswer()
        else events.onEnd(new Error(`a reader was answered with ${status}`))
      }
      events.onBytes(length)
      return true
    },
  }
  const address = { host: '127.0.0.1', port, onread }
  const socket = tls ? connectTls({ ...address, rejectUnauthorized: false }) : connectTcp(address)
  socket.on('error', events.onEnd)
  socket.on('close', () => events.onEnd(new Error('a reader lost its connection')))
  const target = path.replace('{n}', String(number))
  socket.write(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n`)
  return socket
}
