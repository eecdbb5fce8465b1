import { createEpoch } from '@rejoin/protocol'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createConfirmation } from '../../../src/log/redis/confirmation.ts'
import type { ReadyConnection } from '../../../src/log/redis/handshake.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a server that flushes once a second is good for durability disk, and publishes that come together share a flush', async () => {
  const { confirmation, lead } = openConfirmation()
  const server = everySecond()
  await lead(server)
  await inTime(confirmation.check())
  const before = server.flushes()
  await inTime(Promise.all(Array.from({ length: 100 }, () => confirmation.confirmed())))
  expect(server.flushes() - before).toBeLessThanOrEqual(2)
})

test('a server that a failover leads to is judged anew: one that confirms what it has not flushed confirms no publish', async () => {
  const { confirmation, lead } = openConfirmation()
  await lead(everySecond())
  await inTime(confirmation.check())
  await inTime(confirmation.confirmed())
  await lead(atOnce())
  await expect(inTime(confirmation.confirmed())).rejects.toMatchObject({
    code: 'log-unavailable',
    message: expect.stringContaining('before it has flushed'),
  })
  await lead(everySecond())
  await inTime(confirmation.confirmed())
})

interface Server {
  readonly process: string
  /** How long a write waits for its flush. */
  flushMs(): number
  flushes(): number
}

function everySecond(): Server {
  let flushedAt = Math.floor(performance.now())
  let flushes = 0
  return {
    process: createEpoch(Math.random),
    flushes: () => flushes,
    flushMs() {
      const now = performance.now()
      if (flushedAt <= now) flushes += 1
      while (flushedAt <= now) flushedAt += 1000
      return flushedAt - now
    },
  }
}

function atOnce(): Server {
  return { process: createEpoch(Math.random), flushes: () => 0, flushMs: () => 1 }
}

function openConfirmation() {
  let server: Server | undefined
  let cut = () => {}
  const open = async () => {
    const { process, flushMs } = server as Server
    const over = new Promise<void>((resolve) => {
      cut = resolve
    })
    const sendTo = (_process: string, [command]: readonly string[]) =>
      command === 'WAITAOF'
        ? new Promise((resolve) => setTimeout(resolve, flushMs(), [1, 0]))
        : Promise.resolve(['appendonly', 'yes', 'appendfsync', 'everysec'])
    return { process, connection: { over, sendTo, destroy: cut } } as unknown as ReadyConnection
  }
  const confirmation = createConfirmation({
    durability: 'disk',
    replicas: 1,
    link: { open, stepOver: async () => ['probed'] },
    state: { history: [], epoch: '' },
    flushing: { durability: 'memory', learn: () => {} },
    answerWithinMs: 5000,
    facts: () => ({ aof: true, waitAof: true, replicas: 0 }),
    writeStep: () => ['probe'],
  })
  return {
    confirmation,
    /** The next connection reaches this server. */
    async lead(next: Server) {
      server = next
      cut()
      await vi.advanceTimersByTimeAsync(0)
    },
  }
}

/** Lets time pass until the promise is settled. */
async function inTime<Result>(promise: Promise<Result>): Promise<Result> {
  let isSettled = false
  const settled = () => {
    isSettled = true
  }
  promise.then(settled, settled)
  while (!isSettled) await vi.advanceTimersByTimeAsync(10)
  return promise
}
