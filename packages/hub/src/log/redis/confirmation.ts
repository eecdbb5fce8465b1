import type { Position, RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../../invalid-option.ts'
import { lostAt } from './branches.ts'
import { type ServerFacts, unavailable } from './checks.ts'
import type { Flushing } from './flushing.ts'
import type { Greeted } from './greeting.ts'
import { asUnavailable, backoff, type Link, pause, within } from './link.ts'
import type { KnownState } from './state.ts'

/** The wait of a publisher after Redis has its event: until the disk of Redis has it, or replicas have it. */
export interface Confirmation {
  readonly durability: 'disk' | 'replicated'
  /** Throws, with advice, when this server cannot give the durability that was asked for. */
  check(): void
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
  readonly flushing: Pick<Flushing, 'durability'>
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
    const over = greeted ?? (await link.open())
    greeted = over
    const count = await within(roundMs + graceMs, () => waitOver(over)).catch((error) => {
      over.connection.destroy()
      greeted = undefined
      throw error
    })
    if (count < (durability === 'disk' ? 1 : replicas)) throw unavailable(tooFew(count))
  }

  /** How many have the events: 1 for the server's own disk, or the number of replicas. */
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

  /** Why the server cannot give the durability that was asked for; undefined when it can. */
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
      if (missing) throw invalidOption(`${missing}, or leave durability out.`)
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
  /** The branch on which the event was appended. */
  readonly epoch: string
  readonly deadline: number
  resolve(): void
  reject(error: RejoinError): void
}

// Within this time, a Redis that flushes every second has flushed. After each round, publishers whose time is up are told.
const longestRoundMs = 2000
// Time for the answer to travel.
const graceMs = 2000
