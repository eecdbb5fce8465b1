import assert from 'node:assert/strict'
import { origin } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'
import { append, type Duties, entry, readAll } from './log-bench.ts'

/** Duties towards publishers that repeat a publish: how many idempotency keys a log remembers, and for how long (§5.5). */
export const keyDuties: Duties = {
  async 'a key younger than ten minutes is not forgotten, however many come after it'({ open, environment }) {
    const log = await open(lasting, { maxKeys: 2, maxRecentKeys: 40 })
    for (let number = 0; number < 12; number += 1) await publishOnce(log, 'me', number)
    await environment.advance(9 * 60_000)
    for (let number = 12; number < 18; number += 1) await publishOnce(log, 'me', number)
    for (let number = 0; number < 18; number += 1) await publishOnce(log, 'me', number)
    assert.equal((await readAll(log, ['a'], origin)).length, 18)
  },

  async 'keys older than that go when there are too many of them, the oldest first'({ open, environment }) {
    const log = await open(lasting, { maxKeys: 2, maxRecentKeys: 40 })
    for (let number = 0; number < 4; number += 1) {
      await publishOnce(log, 'me', number)
      await environment.advance(1)
    }
    await environment.advance(11 * 60_000)
    await publishOnce(log, 'me', 4)
    await publishOnce(log, 'me', 3)
    assert.equal((await readAll(log, ['a'], origin)).length, 5)
    await publishOnce(log, 'me', 0)
    assert.equal((await readAll(log, ['a'], origin)).length, 6)
  },

  async 'a publisher that has taken its share of the keys is rejected, erases none of another, and leaves room for it'({
    open,
    environment,
  }) {
    const log = await open(lasting, { maxKeys: 2, maxRecentKeys: 12 })
    await publishOnce(log, 'you', 0)
    const mine = await publishUntilRejected(log, 'me')
    assert.ok(mine >= 4 && mine <= 6, `one of two publishers has ${mine} of 12 keys`)
    await publishOnce(log, 'you', 0)
    assert.equal((await readAll(log, ['a'], origin)).length, mine + 1)
    await publishOnce(log, 'you', 1)
    await append(log, [entry('a', 'without a key')])
    assert.equal((await readAll(log, ['a'], origin)).length, mine + 3)
    // A rejected publish leaves no key behind: it succeeds under the same key once there is room.
    await environment.advance(11 * 60_000)
    for (let attempt = 0; attempt < 20; attempt += 1) {
      const isTaken = await publishOnce(log, 'me', mine).then(
        () => true,
        () => false,
      )
      if (isTaken) break
      await log.probe()
    }
    assert.equal((await readAll(log, ['a'], origin)).length, mine + 4)
  },

  async 'keys of a time when the clock was ahead are forgotten like all others, also after a restart'({
    open,
    environment,
  }) {
    for (const isClosed of [false, true]) {
      let log = await open(lasting, { maxKeys: 2, maxRecentKeys: 12 })
      const scope = isClosed ? 'after a restart' : 'at once'
      environment.stepClock(aYearMs)
      for (let number = 100; number < 103; number += 1) await publishOnce(log, scope, number)
      environment.stepClock(-aYearMs)
      if (isClosed) {
        await log.close()
        log = await open(lasting, { maxKeys: 2, maxRecentKeys: 12 })
      }
      let number = 0
      for (let round = 0; round < 4; round += 1) {
        const before = number
        number = await publishUntilRejected(log, scope, number)
        // A publisher alone has room for 6 keys, of which at most 2 are from the round before.
        assert.ok(round === 0 || number - before >= 4, `room for ${number - before} keys in round ${round}`)
        await environment.advance(11 * 60_000)
        // Each commit forgets some of the old keys.
        for (let commit = 0; commit < 4; commit += 1) await log.probe()
      }
      await log.close()
    }
  },
}

const aYearMs = 365 * 24 * 3_600_000

// The events are counted, and must not age out meanwhile.
const lasting = { maxAgeMs: 24 * 3_600_000 }

function publishOnce(log: Log, scope: string, number: number): Promise<unknown> {
  return append(log, [entry('a', `${number}`)], { scope, key: `key ${number}`, hash: `${number}` })
}

async function publishUntilRejected(log: Log, scope: string, from = 0): Promise<number> {
  for (let number = from; number < 100; number += 1) {
    try {
      await publishOnce(log, scope, number)
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'overloaded')
      return number
    }
  }
  return assert.fail('it took 100 keys of one publisher')
}
