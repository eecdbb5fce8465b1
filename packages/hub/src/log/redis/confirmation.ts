import type { Position, RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../../invalid-option.ts'
import { lostAt } from './branches.ts'
import { type ServerFacts, unavailable } from './checks.ts'
import { type Flushing, flushingCommand } from './flushing.ts'
import type { ReadyConnection } from './handshake.ts'
import { asUnavailable, backoff, type Link, pause, within } from './link.ts'
import type { KnownState } from './state.ts'

/** The wait of a publisher after Redis has its event: until the disk of Redis has it, or replicas have it. */
export interface Confirmation {
  readonly durability: 'disk' | 'replicated'
  /**
   * Throws, with advice, when this server cannot give the durability that was asked for. With `disk` under `appendfsync everysec`
   * it takes up to three seconds to find out.
   */
  check(): Promise<void>
  /** Resolves when everything appended before the call is that safe. Rejects with `log-unavailable` when it takes too long. */
  confirmed(position?: Position): Promise<void>
  /** Resolves when no publisher waits any more. */
  close(): Promise<void>
}

export interface ConfirmationOptions {
  readonly durability: 'disk' | 'replicated'
  readonly replicas: number
  readonly link: Pick<Link, 'open' | 'stepOver'>
  readonly state: Pick<KnownState, 'history' | 'epoch'>
  readonly flushing: Pick<Flushing, 'durability' | 'learn'>
  readonly answerWithinMs: number
  /** The facts of the server that answers now. */
  facts(): ServerFacts
  /** A step that writes something, and fails on a server that lacks an event that this hub has seen. */
  writeStep(): string[]
}

/**
 * Waits over a connection of its own, because WAIT and WAITAOF hold up all later commands of their connection. Both wait only
 * for writes of the same connection. So each round begins with a write, which comes after all earlier appends, over whichever
 * connection they were sent. All publishers that come while a round is under way share the next round.
 */
export function createConfirmation(options: ConfirmationOptions): Confirmation {
  const { durability, replicas, link, state, flushing, answerWithinMs, facts, writeStep } = options
  const roundMs = Math.min(answerWithinMs, longestRoundMs)
  let waiting: Waiter[] = []
  let ready: ReadyConnection | undefined
  let running: Promise<void> | undefined
  const pace = createConfirmationPace()
  let judged: { readonly process: string; readonly isEarly: boolean } | undefined
  let triedAt = 0
  /** Rounds that are still to be made for the pace alone, whether or not a publisher waits. */
  let trials = 0
  let publishers = 0

  async function waitForAll(): Promise<void> {
    for (let failures = 0; waiting.length > 0 || trials > 0; ) {
      const asked = waiting
      waiting = []
      publishers = asked.length
      trials -= Math.min(trials, 1)
      const failure = await round().then(
        () => undefined,
        (error: unknown) => asUnavailable(error),
      )
      failures = failure ? failures + 1 : 0
      if (failure) trials = 0
      const left = asked.filter((waiter) => !settle(waiter, failure))
      waiting = [...left, ...waiting]
      if (failure && waiting.length > 0) await pause(backoff(failures))
    }
    running = undefined
  }

  /** Answers a waiter, if it can. Returns false when the waiter has to wait for another round. */
  function settle({ position, epoch, deadline, resolve, reject }: Waiter, failure: RejoinError | undefined): boolean {
    if (position && lostAt(state.history, epoch, position)) reject(unavailable('it lost the event in a failover'))
    else if (!failure) resolve()
    else if (performance.now() >= deadline) reject(failure)
    else return false
    return true
  }

  async function round(): Promise<void> {
    const missing = lacking()
    if (missing) throw unavailable(missing)
    const over = await connected()
    if (await isEarly(over)) throw unavailable(early)
    const count = await waitFor(over, roundMs)
    if (count < (durability === 'disk' ? 1 : replicas)) throw unavailable(tooFew(count))
    if (needsWaitAof() && (await isTooFast(over, performance.now()))) throw unavailable(early)
  }

  /** Judges the pace of rounds, and sees to it that there are enough of them to judge by, also where few publish. */
  async function isTooFast(over: ReadyConnection, confirmedAt: number): Promise<boolean> {
    if (pace.isEarly(confirmedAt)) {
      // A second trial: the start of an AOF rewrite is a flush out of turn.
      judged = undefined
      return await isEarly(over)
    }
    if (confirmedAt - triedAt > trialEveryMs) {
      triedAt = confirmedAt
      trials = 2
    }
    return false
  }

  async function connected(): Promise<ReadyConnection> {
    if (ready) return ready
    const over = await link.open()
    ready = over
    void over.connection.over.then(() => {
      if (ready === over) ready = undefined
    })
    return over
  }

  /** Whether this server confirms too early. Finds out once for each process, and again after a pace that is too fast. */
  async function isEarly(over: ReadyConnection): Promise<boolean> {
    const { process, connection } = over
    if (!needsWaitAof()) return false
    if (judged?.process === process) return judged.isEarly
    pace.interrupt()
    triedAt = performance.now()
    const confirm = async (withinMs: number) => (await waitFor(over, withinMs)) >= 1
    const found = await confirmsEarly(confirm, { firstWithinMs: roundMs, now: () => performance.now() })
    if (found === undefined) return false
    // With `appendfsync always`, set meanwhile, Redis is as fast and right.
    if (found) flushing.learn(await connection.sendTo(process, flushingCommand).catch(() => undefined))
    if (found && !needsWaitAof()) return false
    judged = { process, isEarly: found }
    return found
  }

  function waitFor(over: ReadyConnection, withinMs: number): Promise<number> {
    return within(withinMs + graceMs, () => waitOver(over, withinMs)).catch((error) => {
      over.connection.destroy()
      if (ready === over) ready = undefined
      throw error
    })
  }

  /** How many have the events: 1 for the server's own disk, or the number of replicas. */
  async function waitOver(over: ReadyConnection, withinMs: number): Promise<number> {
    const written = link.stepOver(over, ...writeStep())
    const waited = over.connection.sendTo(over.process, command(withinMs))
    const [[outcome], answer] = (await Promise.all([written, waited])) as [[string], unknown]
    if (outcome.startsWith('!')) throw unavailable('it is not the server that took the event')
    return Number(Array.isArray(answer) ? answer[0] : answer)
  }

  function command(withinMs: number): string[] {
    return durability === 'disk'
      ? ['WAITAOF', '1', '0', String(withinMs)]
      : ['WAIT', String(replicas), String(withinMs)]
  }

  function tooFew(count: number): string {
    if (durability === 'disk') return 'it has the event, but not on its disk yet'
    return `it has the event, but of its replicas ${count} have it, and ${replicas} have to`
  }

  /** With appendfsync always, Redis flushes before it answers. */
  function needsWaitAof(): boolean {
    return durability === 'disk' && flushing.durability !== 'disk'
  }

  /** Why the server cannot give the durability that was asked for; undefined when it can. */
  function lacking(): string | undefined {
    if (!needsWaitAof()) return undefined
    const { aof, waitAof } = facts()
    if (!aof) return 'durability is disk, and Redis has appendonly no. Set appendonly yes'
    if (flushing.durability === 'os') return 'durability is disk, and Redis has appendfsync no. Set everysec or always'
    if (waitAof) return undefined
    return (
      'durability is disk, and this Redis cannot tell when an event is there: WAITAOF came with Redis 7.2. ' +
      'Set appendfsync always, or use a newer Redis'
    )
  }

  return {
    durability,
    async check() {
      const missing = lacking() ?? (needsWaitAof() && (await isEarly(await connected())) ? early : undefined)
      if (missing) throw invalidOption(`${missing}, or leave durability out.`)
    },
    confirmed(position) {
      if (durability === 'disk' && !needsWaitAof()) return Promise.resolve()
      return new Promise((resolve, reject) => {
        const deadline = performance.now() + answerWithinMs
        waiting.push({ position, epoch: state.epoch, deadline, resolve, reject })
        running ??= waitForAll()
      })
    },
    async close() {
      trials = 0
      // A round that no publisher waits for need not end.
      if (publishers === 0 && waiting.length === 0) ready?.connection.destroy()
      await running
      ready?.connection.destroy()
    },
  }
}

const early =
  'durability is disk, and this server confirms a flush (WAITAOF) before it has flushed, as Redis 7.4.0 to 7.4.2 and Valkey 8.0 do ' +
  'under appendfsync everysec. Use Redis 7.4.3, 8.0 or later; or set appendfsync always, which the hub reads by CONFIG GET'

interface Waiter {
  readonly position: Position | undefined
  /** The branch on which the event was appended. */
  readonly epoch: string
  readonly deadline: number
  resolve(): void
  reject(error: RejoinError): void
}

// Within this time, a Redis that flushes every second has flushed. After each round, publishers whose time is up are told.
const longestRoundMs = 2000
// A trial is two small writes and two rounds, which publishers share.
const trialEveryMs = 60_000
// Time for the answer to travel.
const graceMs = 2000

/**
 * Whether a server under `appendfsync everysec` confirms writes before it has flushed them. Such a server begins at most one flush
 * a second. Each of three writes is sent after the confirmation of the one before, so each needs a flush of its own, and the third
 * cannot be on the disk within a second of the first confirmation. Two writes would not tell: the flush behind the first may
 * have taken longer than a second itself.
 *
 * `confirm` writes something, and waits at most that long for its confirmation. Undefined when the server has confirmed nothing
 * in time, so that there is nothing to judge.
 */
export async function confirmsEarly(
  confirm: (withinMs: number) => Promise<boolean>,
  { firstWithinMs, now }: { readonly firstWithinMs: number; now(): number },
): Promise<boolean | undefined> {
  if (!(await confirm(firstWithinMs))) return undefined
  const deadline = now() + soonestMs
  for (let writes = 2; writes > 0; writes -= 1) {
    const leftMs = Math.floor(deadline - now())
    // WAITAOF takes 0 for no limit.
    if (leftMs < 1 || !(await confirm(leftMs))) return false
  }
  return now() < deadline
}

/**
 * The same rule for the confirmations that follow. A server that has writes to do in every turn flushes before it confirms, and
 * confirms too early only when it is less busy. So one trial at the start proves little about a server that was busy then.
 */
export function createConfirmationPace(): ConfirmationPace {
  let times: readonly number[] = []
  return {
    isEarly(confirmedAt) {
      const [first] = times.length === 2 ? times : []
      times = [...times.slice(-1), confirmedAt]
      return first !== undefined && confirmedAt - first < soonestMs
    },
    interrupt() {
      times = []
    },
  }
}

/** Watches confirmations, of writes that were each sent after the confirmation before. */
export interface ConfirmationPace {
  /** Notes a confirmation. True when it and the two before it came faster than a server can flush. */
  isEarly(confirmedAt: number): boolean
  /** The next confirmation does not follow those before it: another server answers, or nothing was confirmed in time. */
  interrupt(): void
}

// A second, less what the clock of Redis is behind on a busy machine.
const soonestMs = 800
