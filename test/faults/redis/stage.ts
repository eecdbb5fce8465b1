import { createRandom } from '@rejoin/hub/testing'
import { type FaultProxy, openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { createWallClock } from '../../support/wall-clock.ts'
import { type Crowd, type CrowdOptions, openCrowd } from '../crowds/crowd.ts'
import type { History } from '../history/history.ts'
import { type HubProcessOptions, type StartedHub, startHub } from '../hubs/hub-process.ts'
import { type LastingHub, openLastingHub } from '../hubs/lasting-hub.ts'
import { inBatches } from '../recorders/batches.ts'
import { batchThroughHttp, throughHttp } from '../recorders/recorders.ts'

/**
 * Several hubs on one Redis, each with a line of its own to it that can be broken, and a crowd in front of them. A reader
 * or a publisher whose hub is gone is led to another one, as a load balancer would.
 */
export async function runOnRedis(options: RedisRunOptions): Promise<void> {
  const { history, seed, name, hubs: count, readers, eventsPerSecond } = options
  history.write({ kind: 'run', name, seed, inputs: { hubs: count, readers, eventsPerSecond } })
  const random = createRandom(seed)
  const closing: (() => Promise<unknown> | unknown)[] = []
  try {
    const clock = options.canSetClock ? createWallClock() : undefined
    if (clock) closing.push(() => clock.remove())
    const redis = await startRedis({
      settings: { 'repl-diskless-sync-delay': 0, appendfsync: 'always', ...options.settings },
      env: clock?.env ?? {},
    })
    closing.push(() => redis.remove())
    const targets: { port: number }[] = []
    const lines: FaultProxy[] = []
    const hubs: LastingHub<StartedHub, number>[] = []
    const doors: Door[] = []
    for (let index = 0; index < count; index += 1) {
      const target = { port: redis.port }
      targets.push(target)
      const line = await openFaultProxy({ target, random })
      closing.push(() => line.close())
      lines.push(line)
      const place = { port: line.port, answerWithinMs: options.answerWithinMs ?? 2000 }
      const hubOptions = { ...options.hub, window: options.window, redis: place }
      const hub = await openLastingHub<StartedHub, number>({
        random,
        start: (port, aheadMs = 0) => startHub(history, { ...hubOptions, port, aheadMs }),
      })
      closing.push(() => hub.abandon())
      hubs.push(hub)
      const leadsTo = { port: hub.port }
      const proxy = await openFaultProxy({ target: leadsTo, random })
      closing.push(() => proxy.close())
      doors.push({ proxy, leadsTo })
    }
    const originOf = (index: number) => `http://127.0.0.1:${(doors[index % count] as Door).proxy.port}`
    let sent = 0
    const spared = doors.map(() => 0)
    // In turn to all hubs, but not at once again to one that failed. What was rejected while Redis is away may be there all
    // the same, so it is sent again.
    const inTurn =
      <Given extends unknown[], Result extends Told>(
        through: (origin: string) => (...given: Given) => Promise<Result>,
      ) =>
      async (...given: Given): Promise<Result> => {
        sent += 1
        const turns = doors.map((_, index) => (sent + index) % count)
        const chosen = turns.find((index) => (spared[index] as number) < performance.now()) ?? (turns[0] as number)
        const outcome = await through(originOf(chosen))(...given)
        if (outcome.kind === 'ok') return outcome
        spared[chosen] = performance.now() + sparedMs
        return outcome.kind === 'fail' && outcome.why?.startsWith('status 503')
          ? { ...outcome, kind: 'unknown' }
          : outcome
      }
    const { collectMs = 0 } = options
    const send = collectMs > 0 ? inBatches(inTurn(batchThroughHttp), collectMs) : inTurn(throughHttp)
    const crowd = openCrowd({ ...options, originOf, send, resends: 1000, resendAfterMs: 50 })
    const stage: RedisStage = {
      ...{ history, redis, hubs, lines, crowd, random },
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      lead(from, to) {
        const door = doors[from] as Door
        door.leadsTo.port = (hubs[to] as LastingHub).port
        door.proxy.cutAll('reset')
      },
      serveFrom(server, hubs = lines.map((_, index) => index)) {
        for (const index of hubs) (targets[index] as { port: number }).port = server.port
        for (const index of hubs) lines[index]?.cutAll('reset')
      },
      serveNewFrom(server) {
        for (const target of targets) target.port = server.port
      },
      setRedisClock(aheadMs) {
        if (!clock) throw new Error('Ask for a clock that can be set.')
        clock.set(aheadMs)
      },
      closing: (task) => void closing.push(task),
    }
    await crowd.renewed()
    await options.faults(stage)
    await crowd.renewed()
    await crowd.finish()
    for (const hub of hubs) await hub.stop()
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

const sparedMs = 1000

interface Told {
  readonly kind: 'ok' | 'fail' | 'unknown'
  readonly why?: string
}

interface Door {
  readonly proxy: FaultProxy
  /** The proxy looks here for every new connection. */
  readonly leadsTo: { port: number }
}

export interface RedisRunOptions extends Omit<CrowdOptions, 'originOf' | 'send' | 'resends' | 'resendAfterMs'> {
  readonly name: string
  readonly seed: number
  readonly hubs: number
  readonly hub: HubProcessOptions
  /** @defaultValue 2000 */
  readonly answerWithinMs?: number
  /**
   * For how long publishes are collected, to be sent as one batch, in ms; 0: each is sent by itself.
   * @defaultValue 0
   */
  readonly collectMs?: number
  /** Of Redis, over those of an append-only file that has what was answered, whenever Redis is killed. */
  readonly settings?: Readonly<Record<string, string | number>>
  /**
   * Whether Redis has a clock that can be set. Needs a C compiler.
   * @defaultValue false
   */
  readonly canSetClock?: boolean
  faults(stage: RedisStage): Promise<void>
}

export interface RedisStage {
  readonly history: History
  readonly redis: RedisServer
  readonly hubs: readonly LastingHub<StartedHub, number>[]
  /** From each hub to Redis. */
  readonly lines: readonly FaultProxy[]
  readonly crowd: Crowd
  random(): number
  pause(ms: number): Promise<void>
  /** Leads everybody who came to one hub to another. */
  lead(from: number, to: number): void
  /** These hubs find this Redis from now on; left out, all of them. */
  serveFrom(server: Pick<RedisServer, 'port'>, hubs?: readonly number[]): void
  /** New connections of all hubs find this Redis; those there are stay where they are. */
  serveNewFrom(server: Pick<RedisServer, 'port'>): void
  /** To so many ms ahead of ours. */
  setRedisClock(aheadMs: number): void
  /** Done at the end of the run, whatever happens. */
  closing(task: () => Promise<unknown>): void
}
