import { connect, type Socket } from 'node:net'
import { answerCalls } from '../processes/commands.ts'
import { countFrames, type FrameCount, type Stride } from './frame-count.ts'

export interface Crowd {
  readonly port: number
  readonly path: string
  readonly count: number
  /** What the readers saw last; left out, they come for the first time. */
  readonly cursor?: string
  /** How many events each has to get before it has everything; 0 waits for the answer alone. */
  readonly events: number
  /** How many connect at a time. */
  readonly atOnce: number
}

export interface Arrival {
  /** Until the last reader had everything. */
  readonly ms: number
  /** Until half of the readers had everything. */
  readonly halfMs: number
  /** Processor time of this process. */
  readonly clientCpuMs: number
}

let sockets: Socket[] = []
let extra: string | undefined

const commands = {
  /** Connects all readers, and waits until each has everything. */
  async arrive(crowd: Crowd): Promise<Arrival> {
    const usage = process.cpuUsage()
    const started = performance.now()
    const took = await connectAll(crowd)
    const { user, system } = process.cpuUsage(usage)
    took.sort((one, other) => one - other)
    return {
      ms: took.at(-1)! - started,
      halfMs: took[Math.floor(took.length / 2)]! - started,
      clientCpuMs: (user + system) / 1000,
    }
  },
  /** Cuts all connections by a reset, as a router that restarts does. Throws when a reader had got what it should not have. */
  cut(): void {
    const cut = sockets
    sockets = []
    for (const socket of cut) socket.removeAllListeners('close').resetAndDestroy()
    if (extra !== undefined) throw new Error(extra)
  },
}

export type CrowdCommands = typeof commands

answerCalls(commands)

async function connectAll(crowd: Crowd): Promise<number[]> {
  // All sockets read into the same memory, because what was read is looked at before anything else is read.
  const buffer = Buffer.alloc(64 * 1024)
  const stride: Stride = { frameBytes: 0 }
  const took: number[] = []
  let begun = 0
  const share = async () => {
    while (begun < crowd.count) {
      begun += 1
      await connectOne(crowd, addressOf(begun), buffer, stride)
      took.push(performance.now())
    }
  }
  await Promise.all(Array.from({ length: crowd.atOnce }, share))
  return took
}

// Readers come from many networks. As many from one address, of which this busy process has yet to write the requests, would be
// an attack, and are taken for one.
const readersPerAddress = 100

function addressOf(reader: number): string {
  return `127.0.1.${1 + (Math.floor(reader / readersPerAddress) % 250)}`
}

function connectOne(
  { port, path, cursor, events }: Crowd,
  localAddress: string,
  buffer: Buffer,
  stride: Stride,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const frames: FrameCount = { events: 0, bytes: 0, skip: 0, onAge: undefined }
    const onread = {
      buffer,
      callback(length: number): boolean {
        if (frames.bytes === 0 && !buffer.toString('latin1', 0, 15).startsWith('HTTP/1.1 200')) {
          reject(new Error(`a reader was answered with ${buffer.toString('latin1', 0, Math.min(length, 400))}`))
        }
        countFrames(frames, stride, buffer, length)
        if (frames.events >= events) resolve()
        if (frames.events > events) extra = `a reader got ${frames.events} events, and should have got ${events}`
        return true
      },
    }
    const socket = connect({ host: '127.0.0.1', port, localAddress, onread })
    sockets.push(socket)
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('a reader lost its connection')))
    const resume = cursor === undefined ? '' : `Last-Event-ID: ${cursor}\r\n`
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n${resume}\r\n`)
  })
}
