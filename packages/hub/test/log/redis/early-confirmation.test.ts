import { expect, test } from 'vitest'
import { confirmsEarly, createConfirmationPace } from '../../../src/log/redis/confirmation.ts'

test.each([
  ['at once', [0, 0, 0, 0]],
  ['within 5 ms', [5, 5, 5, 5]],
  ['later than flushes begin', [1500, 2, 2, 2]],
  ['later than anybody waits', [2500, 1, 1, 1]],
])('a disk that flushes %s is not taken for one that does not flush', async (_, flushesMs) => {
  for (let begun = -1000; begun <= 0; begun += 50) {
    expect(await judged(everySecond({ begun, flushesMs }))).not.toBe(true)
  }
})

test('a server that confirms what it has not flushed is found out, however it began', async () => {
  for (const firstMs of [0, 300, 1000]) {
    let writes = 0
    const server = (now: number) => {
      writes += 1
      return now + (writes === 1 ? firstMs : 60)
    }
    expect(await judged(server)).toBe(true)
  }
})

test('no pace of a disk that flushes once a second is too fast', () => {
  for (let begun = -1000; begun <= 0; begun += 50) {
    for (const flushMs of [0, 5, 700, 1500]) {
      const server = everySecond({ begun, flushesMs: [1500, ...Array.from({ length: 19 }, () => flushMs)] })
      const pace = createConfirmationPace()
      for (let now = 0, writes = 0; writes < 20; writes += 1) {
        now = server(now)
        expect(pace.isEarly(now)).toBe(false)
      }
    }
  }
})

test('three confirmations within a second are too many, whatever came before', () => {
  const pace = createConfirmationPace()
  expect([0, 1000, 2000, 2010, 2020].map((at) => pace.isEarly(at))).toEqual([false, false, false, false, true])
  pace.interrupt()
  expect([2030, 2040, 2050].map((at) => pace.isEarly(at))).toEqual([false, false, true])
})

/** When a write at `now` is confirmed. */
type Server = (now: number) => number

/** Begins a flush a second after the one before, at the earliest, and never two at once. */
function everySecond({ begun, flushesMs }: { begun: number; flushesMs: readonly number[] }): Server {
  let last = begun
  let ended = begun
  let flush = 0
  return (now) => {
    last = Math.max(now, last + 1000, ended)
    ended = last + (flushesMs[flush] ?? 0)
    flush += 1
    return ended
  }
}

async function judged(server: Server): Promise<boolean | undefined> {
  let now = 0
  const confirm = (withinMs: number) => {
    const confirmedAt = server(now)
    const isInTime = confirmedAt <= now + withinMs
    now = isInTime ? confirmedAt : now + withinMs
    return Promise.resolve(isInTime)
  }
  return await confirmsEarly(confirm, { firstWithinMs: 2000, now: () => now })
}
