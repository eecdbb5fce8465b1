import { createHub, type Hub, systemEnvironment } from '@rejoin/hub'
import { redisLog } from '@rejoin/hub/redis'
import { createRandom } from '@rejoin/hub/testing'
import { Redis } from 'ioredis'
import { expect, onTestFinished } from 'vitest'
import { openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { replicated, startRedis } from '../../support/redis-server.ts'
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
      replication.reject('silence')
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
