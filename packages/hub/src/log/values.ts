import { RejoinError } from '@rejoin/protocol'
import type { PutIfAbsent } from './contract.ts'

/** `putIfAbsent` in the memory of this process. */
export function createValues(now: () => number): PutIfAbsent {
  const values = createValueMap(now)
  return async (name, text, forMs) => {
    const standing = values.get(name)
    if (standing !== undefined) return standing
    values.add(name, text, forMs)
    return text
  }
}

/** Texts by name, each until its time has passed. */
export interface ValueMap {
  get(name: string): string | undefined
  /**
   * Adds a text, and drops some whose time has passed. Throws `overloaded` when too many are kept.
   *
   * @param forMs - for ever when it is undefined
   */
  add(name: string, text: string, forMs: number | undefined): AddedValue
  /** Adds a text that was kept elsewhere. */
  restore(name: string, text: string, until: number): void
  remove(name: string): void
}

export interface AddedValue {
  /** In milliseconds since 1970; infinite for a text that stays. */
  readonly until: number
  /** The names of the texts that were dropped. */
  readonly dropped: readonly string[]
}

// About 20 MB. With tickets of half a minute, these are 3,000 readers a second.
const maxValues = 100_000
// More than one, so that the expired texts become fewer with each text that is added.
const lookedAtPerAdd = 16

export function createValueMap(now: () => number): ValueMap {
  const values = new Map<string, { text: string; until: number }>()
  // Goes round and round, because texts expire in any order.
  let round = values.entries()

  function dropSome(): string[] {
    const dropped: string[] = []
    for (let looked = 0; looked < lookedAtPerAdd; looked += 1) {
      const { value, done } = round.next()
      if (done) {
        round = values.entries()
        break
      }
      const [name, { until }] = value
      if (until > now()) continue
      values.delete(name)
      dropped.push(name)
    }
    return dropped
  }

  return {
    get(name) {
      const found = values.get(name)
      return found && found.until > now() ? found.text : undefined
    },
    add(name, text, forMs = Number.POSITIVE_INFINITY) {
      const dropped = dropSome()
      if (values.size >= maxValues) {
        throw new RejoinError('The log keeps too many texts for its hubs. Retry in a while.', {
          code: 'overloaded',
          retryable: true,
        })
      }
      const until = now() + forMs
      values.set(name, { text, until })
      return { until, dropped }
    },
    restore: (name, text, until) => void values.set(name, { text, until }),
    remove: (name) => void values.delete(name),
  }
}
