import { createHash } from 'node:crypto'
import { isSame } from '@rejoin/protocol'
import type { Stamp } from '../contract.ts'
import {
  admitKey,
  type IdempotencyOptions,
  isCrowded,
  isForgotten,
  keyLimits,
  keyReused,
  type Once,
} from '../idempotency.ts'
import { ByteWriter, unseal } from './bytes.ts'
import { onceCountKey, onceKey, onceOrderKey, onceOrderRange, positionOf } from './keys.ts'
import type { LogState } from './state.ts'
import type { Entry, Store } from './store.ts'

/**
 * What publishes were already made under which key. A key is stored in the same commit as its events: a publisher that
 * retries after a crash would otherwise publish twice, which is the very thing it named a key for.
 */
export interface StoredOnce {
  /** The positions of an earlier publish, made or under way. Throws `key-reused` when that one said something else. */
  earlier(once: Once, now: number): Promise<readonly Stamp[]> | undefined
  /**
   * Throws `overloaded` when there is no room for another key of this publisher.
   *
   * @param stored - how many keys there are
   */
  admit(once: Once, stored: number): void
  /** A publish is under way; `stored` settles with it. */
  begin(once: Once, stamps: readonly Stamp[], stored: Promise<void>): void
  /** What is to be stored of a publish, and which old keys go. Counts both in `state`. */
  changes(made: readonly { once: Once; stamps: readonly Stamp[] }[], state: LogState, now: number): OnceChanges
}

export interface OnceChanges {
  readonly puts: Entry[]
  readonly removals: Buffer[]
}

// Old keys go as new ones come, some more of them than come, so that their number falls back under its bound; 3 µs each.
const removalsAtMost = { usually: 64, over: 1024 }

export function createStoredOnce(store: Store, options?: IdempotencyOptions): StoredOnce {
  const limits = keyLimits(options)
  const underWay = new Map<string, { hash: string; stamps: Promise<readonly Stamp[]> }>()
  const underWayOf = new Map<string, number>()

  function countUnderWay(scope: string, change: number): void {
    const count = (underWayOf.get(scope) ?? 0) + change
    if (count > 0) underWayOf.set(scope, count)
    else underWayOf.delete(scope)
  }

  return {
    earlier(once, now) {
      const found = underWay.get(idOf(once)) ?? findPublish(store, digestOf(once))
      if (!found || ('at' in found && now - found.at > limits.maxAgeMs)) return undefined
      if (found.hash === once.hash) return Promise.resolve(found.stamps)
      throw keyReused()
    },
    admit({ scope }, stored) {
      const keys = stored + underWay.size
      if (!isCrowded(keys, limits)) return
      admitKey(countOf(store, onceCountKey(tagOf(scope))) + (underWayOf.get(scope) ?? 0), keys, limits)
    },
    begin(once, stamps, stored) {
      const id = idOf(once)
      const end = () => {
        underWay.delete(id)
        countUnderWay(once.scope, -1)
      }
      const answer = stored.then(() => stamps)
      // Of a commit that failed its publisher hears from `stored`; this one is for whoever comes with the same key.
      answer.catch(() => undefined)
      underWay.set(id, { hash: once.hash, stamps: answer })
      countUnderWay(once.scope, 1)
      stored.then(end, end)
    },
    changes(made, state, now) {
      const puts: Entry[] = []
      const removals: Buffer[] = []
      const renewed = new Set<string>()
      const counts = new Map<string, number>()
      const count = (tag: Buffer, change: number) => {
        const name = tag.toString('hex')
        counts.set(name, (counts.get(name) ?? 0) + change)
      }
      for (const { once, stamps } of made) {
        const digest = digestOf(once)
        const key = onceKey(digest)
        const tag = tagOf(once.scope)
        renewed.add(digest.toString('hex'))
        count(tag, 1)
        puts.push({ key, value: sealPublish(key, once.hash, stamps) })
        puts.push({ key: onceOrderKey((stamps[0] as Stamp).position), value: Buffer.concat([digest, tag]) })
      }
      state.keys += made.length
      if (state.keys === 0) return { puts, removals }
      let left = made.length + (state.keys > limits.maxKeys ? removalsAtMost.over : removalsAtMost.usually)
      for (const { key: orderKey, value } of store.range(onceOrderRange.start, onceOrderRange.end)) {
        const digest = value.subarray(0, digestBytes)
        const found = findPublish(store, digest)
        const isCurrent = found !== undefined && isSame(found.stamps[0]!.position, positionOf(orderKey))
        if (left === 0 || (isCurrent && !isForgotten(now - found.at, state.keys, limits))) break
        left -= 1
        state.keys = Math.max(0, state.keys - 1)
        removals.push(orderKey)
        // Those of an earlier version say nothing of their publisher.
        if (value.length > digestBytes) count(value.subarray(digestBytes), -1)
        // The key may have been used again since, for a publish that is younger.
        if (isCurrent && !renewed.has(digest.toString('hex'))) removals.push(onceKey(digest))
      }
      for (const [tag, change] of counts) {
        const key = onceCountKey(Buffer.from(tag, 'hex'))
        const keys = countOf(store, key) + change
        if (keys > 0) puts.push({ key, value: sealCount(key, keys) })
        else removals.push(key)
      }
      return { puts, removals }
    },
  }
}

/** A damaged one counts as none: its publisher may then have more than its share. */
function countOf(store: Store, key: Buffer): number {
  const sealed = store.get(key)
  return (sealed && unseal(key, sealed)?.number()) ?? 0
}

function sealCount(key: Buffer, count: number): Buffer {
  writer.number(count)
  return writer.seal(key)
}

interface StoredPublish {
  readonly hash: string
  readonly stamps: readonly Stamp[]
  readonly at: number
}

/** A damaged one counts as unknown: what it answered for is in the log, but nobody can say any more what it was. */
function findPublish(store: Store, digest: Buffer): StoredPublish | undefined {
  const key = onceKey(digest)
  const sealed = store.get(key)
  const reader = sealed && unseal(key, sealed)
  if (!reader) return undefined
  const hash = reader.text()
  const at = reader.number()
  const stamps: Stamp[] = []
  let { ms, seq } = reader.position()
  for (let count = reader.number(); count > 0; count -= 1) {
    const step = reader.number()
    const next = reader.number()
    seq = step === 0 ? seq + next : next
    ms += step
    stamps.push({ position: { ms, seq }, at })
  }
  return { hash, stamps, at }
}

/** All events of a publish are appended at once, so they share their time. */
function sealPublish(key: Buffer, hash: string, stamps: readonly Stamp[]): Buffer {
  const { position: first, at } = stamps[0] as Stamp
  writer.text(hash)
  writer.number(at)
  writer.position(first)
  writer.number(stamps.length)
  let before = first
  for (const { position } of stamps) {
    const step = position.ms - before.ms
    writer.number(step)
    writer.number(step === 0 ? position.seq - before.seq : position.seq)
    before = position
  }
  return writer.seal(key)
}

const writer = new ByteWriter()

const digestBytes = 16

function digestOf(once: Once): Buffer {
  return createHash('sha256').update(idOf(once)).digest().subarray(0, digestBytes)
}

/** Stands for a scope, which may be long. */
function tagOf(scope: string): Buffer {
  return createHash('sha256').update(scope).digest().subarray(0, 6)
}

// A line break is in no header and no subject, so no two pairs meet.
function idOf({ scope, key }: Once): string {
  return `${scope}\n${key}`
}
