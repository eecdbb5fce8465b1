import { type Position, RejoinError } from '@rejoin/protocol'
import { lostAt } from './branches.ts'
import { type ServerFacts, unavailable } from './checks.ts'
import type { Flushing } from './flushing.ts'
import type { Greeted } from './greeting.ts'
import { asUnavailable, backoff, type Link, pause, within } from './link.ts'
import type { KnownState } from './state.ts'

/** What a publisher waits for beyond that Redis has its event: the disk of Redis, or replicas of it. */
export interface Confirmation {
  readonly durability: 'disk' | 'replicated'
  /** Throws with advice when this server cannot give what was asked for. */
  check(): void
  /** Resolves when all that was appended by now is that safe. Rejects with `log-unavailable` when it takes too long. */
  confirmed(position?: Position): Promise<void>
  /** Resolves when nobody waits any more. */
  close(): Promise<void>
}

export interface ConfirmationOptions {
  readonly durability: 'disk' | 'replicated'
  readonly replicas: number
  readonly link: Pick<Link, 'open' | 'stepOver'>
  readonly state: Pick<KnownState, 'history' | 'epoch'>
  readonly flushing: Pick<Flushing, 'durability'>
  readonly answerWithinMs: number
  /** Of the server that answers now. */
  facts(): ServerFacts
  /** A step that writes something, and fails on a server that does not have all that this hub has seen. */
  writeStep(): string[]
}

/**
 * The wait is a connection of its own: WAIT and WAITAOF hold up everything behind them on theirs. A connection waits for what was
 * written over it, so each round begins with a write; it comes after all that was appended before, wherever that was sent.
 * Everybody who comes while a round is under way shares the next one.
 */
export function createConfirmation(options: ConfirmationOptions): Confirmation {
  const { durability, replicas, link, state, flushing, answerWithinMs, facts, writeStep } = options
  const roundMs = Math.min(answerWithinMs, longestRoundMs)
  let waiting: Waiter[] = []
  let greeted: Greeted | undefined
  let running: Promise<void> | undefined

  async function waitForAll(): Promise<void> {
    for (let failures = 0; waiting.length > 0; ) {
      const asked = waiting
      waiting = []
      const failure = await round().then(
        () => undefined,
        (error: unknown) => asUnavailable(error),
      )
      failures = failure ? failures + 1 : 0
      const left = asked.filter((waiter) => !settle(waiter, failure))
      waiting = [...left, ...waiting]
      if (failure && waiting.length > 0) await pause(backoff(failures))
    }
    running = undefined
  }

  /** Whether there is nothing more to wait for. */
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
    const over = greeted ?? (await link.open())
    greeted = over
    const count = await within(roundMs + graceMs, () => waitOver(over)).catch((error) => {
      over.connection.destroy()
      greeted = undefined
      throw error
    })
    if (count < (durability === 'disk' ? 1 : replicas)) throw unavailable(tooFew(count))
  }

  /** How many have it: the server's own disk, or replicas. */
  async function waitOver(over: Greeted): Promise<number> {
    const written = link.stepOver(over, ...writeStep())
    const waited = over.connection.sendTo(over.process, command())
    const [[outcome], answer] = (await Promise.all([written, waited])) as [[string], unknown]
    if (outcome.startsWith('!')) throw unavailable('it is not the server that took the event')
    return Number(Array.isArray(answer) ? answer[0] : answer)
  }

  function command(): string[] {
    return durability === 'disk' ? ['WAITAOF', '1', '0', String(roundMs)] : ['WAIT', String(replicas), String(roundMs)]
  }

  function tooFew(count: number): string {
    if (durability === 'disk') return 'it has the event, but not on its disk yet'
    return `it has the event, but of its replicas ${count} have it, and ${replicas} have to`
  }

  /** Why the server cannot give what was asked for; undefined when it can. */
  function lacking(): string | undefined {
    if (durability === 'replicated' || flushing.durability === 'disk') return undefined
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
    check() {
      const missing = lacking()
      if (missing) throw new RejoinError(`${missing}, or leave durability out.`, { code: 'invalid-option' })
    },
    confirmed(position) {
      // With appendfsync always, Redis flushes before it answers.
      if (durability === 'disk' && flushing.durability === 'disk') return Promise.resolve()
      return new Promise((resolve, reject) => {
        const deadline = performance.now() + answerWithinMs
        waiting.push({ position, epoch: state.epoch, deadline, resolve, reject })
        running ??= waitForAll()
      })
    },
    async close() {
      await running
      greeted?.connection.destroy()
    },
  }
}

interface Waiter {
  readonly position: Position | undefined
  /** Of the branch on which it was appended. */
  readonly epoch: string
  readonly deadline: number
  resolve(): void
  reject(error: RejoinError): void
}

// A Redis that flushes every second has flushed by then; publishers whose time is up are told after each round.
const longestRoundMs = 2000
// What the answer may take on its way.
const graceMs = 2000
