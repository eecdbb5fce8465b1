import { createServer as createHttp, type RequestListener } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { answerCalls } from '../processes/commands.ts'
import { stampedEvent } from '../traffic/event.ts'
import { keepPace, type Pace } from '../traffic/pace.ts'
import { profileHeap } from './heap-profile.ts'

export interface Served {
  /** What answers requests. Left out for a server that listens by itself. */
  readonly handler?: RequestListener
  /** Starts that server, and gives its port. */
  listen?(): Promise<number>
  /** Sends one event to all readers of a channel. Servers without channels send everything to everybody. */
  publish(channel: string, data: { readonly t: string }): void
}

/** Runs one of the servers under test as a child process of a bench, with its publisher inside. */
export function serve(served: Served): void {
  answerCalls(serverCommands(served))
}

export type ServerCommands = ReturnType<typeof serverCommands>

export interface Publishing {
  readonly perSecond: number
  readonly eventBytes: number
  /** After this many events on the shared channel, one goes to a reader's own channel, to each reader in turn. */
  readonly ownEvery?: number
  /** All go to that many channels in turn, `turn/0` and on, and none to the shared one. */
  readonly channels?: number
  readonly readers: number
}

export interface Certificate {
  readonly key: string
  readonly cert: string
}

function serverCommands({ handler, publish, listen }: Served) {
  const sockets = new Set<Socket>()
  let pace: Pace | undefined

  return {
    listen({ certificate }: { certificate?: Certificate | undefined }): Promise<number> {
      if (listen) return listen()
      const server = certificate ? createHttps(certificate, handler) : createHttp(handler)
      server.on('connection', (socket: Socket) => {
        sockets.add(socket)
        socket.on('close', () => sockets.delete(socket))
      })
      return new Promise((resolve) => {
        server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
      })
    },
    publish({ perSecond, eventBytes, ownEvery, channels, readers }: Publishing): void {
      let published = 0
      pace = keepPace(perSecond, (due) => {
        publish(channels ? `turn/${published % channels}` : 'shared', stampedEvent(eventBytes, due))
        published += 1
        if (ownEvery && published % ownEvery === 0) {
          publish(`own/${(published / ownEvery) % readers}`, stampedEvent(eventBytes, due))
        }
        return true
      })
    },
    stopPublishing(): void {
      pace?.stop()
    },
    /** Fills what the server keeps of the past, so that this does not grow while it is measured. */
    async publishAtOnce({ events, eventBytes }: { events: number; eventBytes: number }): Promise<void> {
      for (let published = 0; published < events; published += 1) {
        publish('shared', stampedEvent(eventBytes, 0))
        if (published % 100 === 0) await new Promise(setImmediate)
      }
    },
    /** The most bytes that wait in this process for one reader, and how many the kernel has taken for that one. */
    mostWaiting(): { waitingBytes: number; sentBytes: number } {
      let most = { waitingBytes: 0, sentBytes: 0 }
      for (const { writableLength, bytesWritten } of sockets) {
        if (writableLength < most.waitingBytes) continue
        most = { waitingBytes: writableLength, sentBytes: bytesWritten - writableLength }
      }
      return most
    },
    collectGarbage,
    profileHeap,
  }
}

/** Needs `--expose-gc`. Twice, because what the first round finalises only the second one frees. */
function collectGarbage(): void {
  globalThis.gc!()
  globalThis.gc!()
}
