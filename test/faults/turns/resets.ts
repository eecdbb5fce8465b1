import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import { preface, resetRequests } from '../../support/http2-frames.ts'
import type { TurnsProcess } from './turns-process.ts'

/**
 * HTTP/2 requests that are reset in the packet that opens them (CVE-2023-44487). First one packet at a time, to the hub and to Node's
 * own server in alternation: the longest turn of each. Then many packets a second, with `publish` beside them.
 */
export async function resetTurns(server: TurnsProcess, publishP99While: PublishP99While): Promise<Resets> {
  const [hub, bare]: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round += 1) {
    hub.push(await server.longestTurn(() => sendResets(server.http2Ports.hub, perPacket)))
    bare.push(await server.longestTurn(() => sendResets(server.http2Ports.bare, perPacket)))
  }
  const aloneP99Ms = await publishP99While(() => new Promise((resolve) => setTimeout(resolve, floodMs)))
  const publishP99Ms = await publishP99While(() => flood(server.http2Ports.hub))
  return { hubMs: median(hub), bareMs: median(bare), publishP99Ms, aloneP99Ms }
}

export interface Resets {
  /** The longest turn for one packet, as the median of the rounds. */
  readonly hubMs: number
  readonly bareMs: number
  /** Of publishes during a sustained flood. */
  readonly publishP99Ms: number
  /** Of publishes right before, with nobody else there: what the machine makes of them. */
  readonly aloneP99Ms: number
}

type PublishP99While = (task: () => Promise<void>) => Promise<number>

const rounds = 15
// 25 KB.
const perPacket = 400
const floodMs = 5000
// With the handshakes of new connections, about 45 KB a second.
const packetsPerSecond = 10
const perFloodPacket = 60

async function sendResets(port: number, count: number): Promise<void> {
  const socket = await greeted(port)
  socket.write(resetRequests('/events/full', count))
  await new Promise((resolve) => setTimeout(resolve, quietMs))
  socket.destroy()
}

const quietMs = 300

async function flood(port: number): Promise<void> {
  let socket: TLSSocket | undefined
  let next = 0
  for (let packet = 0; packet < (floodMs / 1000) * packetsPerSecond; packet += 1) {
    if (!socket || socket.destroyed) {
      socket = await greeted(port)
      next = 0
    }
    socket.write(resetRequests('/events/full', perFloodPacket, next))
    next += perFloodPacket
    await new Promise((resolve) => setTimeout(resolve, 1000 / packetsPerSecond))
  }
  socket?.destroy()
}

async function greeted(port: number): Promise<TLSSocket> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  socket.on('error', () => socket.destroy())
  await once(socket, 'secureConnect')
  socket.write(preface)
  await once(socket.resume(), 'data')
  return socket
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[figures.length >> 1] as number
}
