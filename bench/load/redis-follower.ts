import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createHub, type Hub } from '@rejoin/hub'
import { redisLog } from '@rejoin/hub/redis'
import { Redis } from 'ioredis'
import { answerCalls } from '../processes/commands.ts'

/** A second hub on the same Redis, with one reader of one channel. */
export interface Followed {
  readonly events: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface CaughtUp {
  /** From its first turn after it stood still until it had everything. */
  readonly ms: number
  /** The longest turn of its event loop meanwhile: for so long no reader of any channel was served. */
  readonly longestTurnMs: number
}

let hub: Hub
let took: number[] = []
let newest = ''
let wake: () => void = () => undefined

const commands = {
  async open({ port, feedBytes }: { port: number; feedBytes: number }): Promise<void> {
    const options = { feed: { maxBytes: feedBytes, maxAgeMs: 600_000 } }
    const log = redisLog(new Redis({ port, lazyConnect: true }), options)
    // Its reader stays, although the hub has not heard from Redis for long: this is about how it catches up.
    hub = await createHub({ log, maxTailSilenceMs: Number.POSITIVE_INFINITY })
    void follow()
  },
  async reset(): Promise<void> {
    took = []
  },
  async delays(): Promise<Followed> {
    const sorted = took.toSorted((a, b) => a - b)
    const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? Number.NaN
    return { events: took.length, p50Ms: at(0.5), p99Ms: at(0.99) }
  },
  /** Resolves when the event with this text has come. */
  async catchUp({ last }: { last: string }): Promise<CaughtUp> {
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    const started = performance.now()
    while (newest !== last) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    const ms = performance.now() - started
    delay.disable()
    return { ms, longestTurnMs: delay.max / 1e6 }
  },
}

export type FollowerCommands = typeof commands

answerCalls(commands)

async function follow(): Promise<void> {
  for await (const { type, data } of hub.stream('watched')) {
    if (type !== 'tick') continue
    const text = String(data)
    took.push(Date.now() - Number(text.slice(0, text.indexOf(' '))))
    newest = text
    wake()
  }
}
