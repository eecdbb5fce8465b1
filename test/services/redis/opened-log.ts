import { randomUUID } from 'node:crypto'
import { type Environment, systemEnvironment } from '@rejoin/hub'
import type { Log, LogEvent, NewEvent, TailBatch } from '@rejoin/hub/log'
import { type RedisClient, type RedisLogOptions, redisLog } from '@rejoin/hub/redis'
import { isAfter, judgeCursor, type Position, renderId } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'

/** A log as one hub has it open, with a tail that is kept, until the test is over. */
export function openRedisLog(
  port: number,
  options: RedisLogOptions = {},
  environment: Environment = systemEnvironment,
): Promise<OpenedLog> {
  return openLogOf(new Redis({ port, lazyConnect: true }), options, environment)
}

/** The same, with a client of any kind. */
export async function openLogOf(
  client: RedisClient | string,
  options: RedisLogOptions = {},
  environment: Environment = systemEnvironment,
): Promise<OpenedLog> {
  const log = await redisLog(client, { onWarning: () => undefined, ...options }).open(environment)
  onTestFinished(() => log.close())
  const batches: TailBatch[] = []
  const start = await log.head()
  let applied = start
  let wake: () => void = () => undefined
  await log.tail(start, (batch) => {
    batches.push(batch)
    applied = batch.events.at(-1)?.position ?? batch.after
    wake()
  })

  async function until(isReached: (place: Position) => boolean): Promise<void> {
    while (!isReached(applied)) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  return {
    log,
    start,
    batches,
    events: () => batches.flatMap((batch) => batch.events),
    async publish(channel, ...texts) {
      const entries: NewEvent[] = texts.map((data) => ({ channel, type: 'message', data }))
      const { stamps } = await log.append(entries, { token: randomUUID() })
      return stamps.map(({ position }) => position)
    },
    applied: until,
    reached: (position) => until((place) => !isAfter(position, place)),
    idOf: (position) => renderId(position, log),
    async judge(id) {
      const head = await log.head()
      const verdict = judgeCursor(id, { formats: log.formats, history: log.history, head })
      return verdict.ok ? 'ok' : verdict.reason
    },
    async read(names, after, limit = 1000) {
      const page = await log.read(names, after, await log.head(), { events: limit, bytes: 1e9 })
      return { data: page.events.map(({ data }) => data), gap: page.gap }
    },
  }
}

export interface OpenedLog {
  readonly log: Log
  /** Where its tail began. */
  readonly start: Position
  readonly batches: readonly TailBatch[]
  events(): LogEvent[]
  publish(channel: string, ...texts: string[]): Promise<Position[]>
  /** Resolves once what the tail has come to satisfies the question. */
  applied(isReached: (place: Position) => boolean): Promise<void>
  reached(position: Position): Promise<void>
  idOf(position: Position): string
  judge(id: string): Promise<string>
  read(names: readonly string[], after: Position, limit?: number): Promise<{ data: string[]; gap: unknown }>
}

/** Asks Redis itself, as an operator would. */
export async function operate(port: number, ...command: string[]): Promise<unknown> {
  const client = new Redis({ port, lazyConnect: true, retryStrategy: () => null })
  client.on('error', () => undefined)
  await client.connect()
  const [name = '', ...args] = command
  const reply = await client.call(name, ...args)
  client.disconnect()
  return reply
}

/** Up to where Redis has written its append-only file; -1 while something waits to be written. */
export async function offsetOf(port: number): Promise<number> {
  const info = String(await operate(port, 'INFO', 'persistence'))
  const fieldOf = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return fieldOf('aof_buffer_length') === 0 ? fieldOf('aof_current_size') - fieldOf('aof_base_size') : -1
}
