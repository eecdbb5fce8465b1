import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createHub, createSubscription, type Hub, type StreamFrame, systemEnvironment } from '@rejoin/hub'
import { nodeHandler } from '@rejoin/hub/node'
import { redisLog } from '@rejoin/hub/redis'
import { createRandom } from '@rejoin/hub/testing'
import { createParser } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { expect, onTestFinished } from 'vitest'
import { openFaultProxy } from '../../faults/fault-proxy.ts'
import { replicated, startRedis } from '../../faults/redis-server.ts'
import { operate } from './opened-log.ts'

/**
 * A master with one hub on it, and a replica. When the replica is promoted while the master lives, a second hub opens on it,
 * and both publish. Each hub dates its events with a clock of its own, which stands for that of its master.
 */
export async function startTwoMasters(): Promise<TwoMasters> {
  const master = await startRedis({ settings: { 'repl-diskless-sync-delay': 0 } })
  onTestFinished(() => master.remove())
  const replication = await openFaultProxy({ target: { port: master.port }, random: createRandom(1) })
  onTestFinished(() => replication.close())
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${replication.port}` } })
  onTestFinished(() => replica.remove())
  await replicated(master)
  const target = { port: master.port }
  const line = await openFaultProxy({ target, random: createRandom(2) })
  onTestFinished(() => line.close())
  const began = Date.now()
  const one = await openClockedHub(line.port, began)

  return {
    one,
    async promote(aheadMs) {
      await replicated(master)
      replication.refuse('silence')
      replication.cutAll('half-open')
      await operate(replica.port, 'REPLICAOF', 'NO', 'ONE')
      return openClockedHub(replica.port, began + aheadMs)
    },
    async moveToPromoted() {
      target.port = replica.port
      line.cutAll('reset')
      await published(one, 'elsewhere')
    },
    killMaster: () => master.kill(),
  }
}

export interface TwoMasters {
  /** On the master. */
  readonly one: ClockedHub
  /** Makes the replica a master too, and opens a hub on it, whose clock is so far ahead of where that of the first began. */
  promote(aheadMs: number): Promise<ClockedHub>
  /** The connections of the first hub lead to the promoted replica from now on. */
  moveToPromoted(): Promise<void>
  killMaster(): Promise<void>
}

export interface ClockedHub {
  readonly hub: Hub
  publish(channel: string, text: string, how?: { live: boolean }): Promise<string>
  /** Sets its clock ahead. */
  pass(ms: number): void
}

/** A hub on a Redis, which dates events with a clock that a test sets. */
export async function openClockedHub(port: number, began: number): Promise<ClockedHub> {
  let now = began
  const log = redisLog(new Redis({ port, lazyConnect: true }), { clock: 'hub', onWarning: () => undefined })
  const hub = await createHub({ log, environment: { ...systemEnvironment, now: () => now } })
  onTestFinished(() => hub.close())
  return {
    hub,
    async publish(channel, text, how) {
      now += 1
      return (await hub.publish(channel, { text, ...how })).id
    },
    pass(ms) {
      now += ms
    },
  }
}

/** A hub that has stored an event knows which log it is on. */
async function published(one: ClockedHub, channel: string): Promise<void> {
  await expect.poll(() => one.publish(channel, 'here').then(Boolean, () => false)).toBe(true)
}

/** What a reader has been given: the data of events, and the reason of each gap. */
export interface Heard {
  said(): string[]
  /** Resolves when this was said. */
  hears(text: string): Promise<void>
  lastId(): string | null
  close(): void
}

/** Reads inside the program until the test is over. */
export function readerOf(hub: Hub, channels: string | readonly string[], cursor?: string): Heard {
  const frames: StreamFrame[] = []
  const leave = new AbortController()
  const start = cursor === undefined ? { from: 'now' as const } : { from: 'cursor' as const, cursor }
  const subscription = createSubscription([channels].flat())
  const read = async () => {
    for await (const frame of hub.stream({ subscription, start }, { signal: leave.signal })) frames.push(frame)
  }
  read().catch(() => undefined)
  onTestFinished(() => leave.abort())
  const said = () => frames.flatMap(toldBy)
  return {
    said,
    hears: (text) => expect.poll(said).toContain(text),
    lastId: () => frames.at(-1)?.id ?? null,
    close: () => leave.abort(),
  }
}

/** What a reader that comes back is told first, over each way there is. */
export async function comesBack(hub: Hub, channel: string, cursor: string): Promise<Record<string, string[]>> {
  const request = { subscription: createSubscription([channel]), start: { from: 'cursor' as const, cursor } }
  const polled = await hub.poll(request, { waitMs: 0 })
  if (!('events' in polled)) throw new Error(polled.reason)
  const reader = readerOf(hub, channel, cursor)
  const last = polled.events.flatMap(toldBy).at(-1)
  if (last !== undefined) await reader.hears(last)
  return {
    poll: polled.events.flatMap(toldBy),
    stream: reader.said(),
    http2: await overHttp2(hub, `/events/${channel}`, cursor, last),
    'http2 poll': await pollOverHttp2(hub, `/poll/${channel}?waitMs=0`, cursor),
  }
}

function toldBy({ type, data }: { readonly type: string; readonly data: string }): string[] {
  if (type === 'sync-required') return [(JSON.parse(data) as { reason: string }).reason]
  return type === 'message' ? [data] : []
}

async function overHttp2(hub: Hub, path: string, cursor: string, last: string | undefined): Promise<string[]> {
  return ask(hub, path, cursor, (text) => {
    const said: string[] = []
    const parser = createParser({
      onEvent: (event) => said.push(...toldBy(event), ...(event.type === 'hello' ? [''] : [])),
    })
    parser.feed(text)
    const isDone = last === undefined ? said.includes('') : said.includes(last)
    return isDone ? said.filter((each) => each !== '') : undefined
  })
}

function pollOverHttp2(hub: Hub, path: string, cursor: string): Promise<string[]> {
  return ask(hub, path, cursor, (text, isWhole) => {
    return isWhole ? (JSON.parse(text) as { events: StreamFrame[] }).events.flatMap(toldBy) : undefined
  })
}

async function ask(
  hub: Hub,
  path: string,
  cursor: string,
  read: (text: string, isWhole: boolean) => string[] | undefined,
): Promise<string[]> {
  const server = createServer(nodeHandler(hub))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  try {
    const stream = session.request({ ':path': path, 'last-event-id': cursor })
    let text = ''
    for await (const chunk of stream.setEncoding('utf8')) {
      text += chunk
      const said = read(text, false)
      if (said) return said
    }
    return read(text, true) ?? []
  } finally {
    session.destroy()
    server.close()
  }
}
