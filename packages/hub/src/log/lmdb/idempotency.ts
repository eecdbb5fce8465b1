import { createHash } from 'node:crypto'
import { isAfter, isSame, type Position } from '@rejoin/protocol'
import type { Stamp } from '../contract.ts'
import {
  admitKey,
  createKeyTimes,
  type IdempotencyOptions,
  isCrowded,
  isForgotten,
  keyLimits,
  keyReused,
  type Once,
} from '../idempotency.ts'
import type { Entry, Store } from './files/store.ts'
import { ByteWriter, unseal } from './format/bytes.ts'
import { onceCountKey, onceKey, onceOrderKey, onceOrderRange, positionOf } from './format/keys.ts'
import type { LogState } from './format/state.ts'

/**
 * Remembers publishes by their idempotency keys, in the store. A key is stored in the same commit as its events: otherwise a
 * publisher that retries after a crash would publish twice, which its key is there to prevent.
 */
export interface StoredOnce {
  /** The stamps of an earlier publish, made or pending. Throws `key-reused` when the earlier publish had another hash. */
  earlier(once: Once, now: number): Promise<readonly Stamp[]> | undefined
  /**
   * Throws `overloaded` when this publisher, or the log, has too many keys.
   *
   * @param stored - how many keys there are
   */
  admit(once: Once, stored: number): void
  /** Notes a pending publish. `stored` settles with its commit. */
  begin(once: Once, stamps: readonly Stamp[], stored: Promise<unknown>): void
  /** The entries to store for these publishes, and the old keys to remove. Counts both in `state`. */
  changes(made: readonly { once: Once; stamps: readonly Stamp[] }[], state: LogState, now: number): OnceChanges
}

export interface OnceChanges {
  readonly puts: Entry[]
  readonly removals: Buffer[]
}

// Each commit removes old keys: as many as it adds, and some more, so that their number falls back under its bound. A removal
// takes 3 µs.
const removalsAtMost = { usually: 64, over: 1024 }

/** @param opened - the time at which the log was opened, and its newest position then */
export function createStoredOnce(
  store: Store,
  opened: { readonly now: number; readonly last: Position },
  options?: IdempotencyOptions,
): StoredOnce {
  const limits = keyLimits(options)
  const times = createKeyTimes<Position>(isAfter)
  times.learn(opened.now, opened.last)
  const ageOf = ({ at, stamps }: StoredPublish, now: number) => now - times.since(at, (stamps[0] as Stamp).position)
  const pending = new Map<string, { hash: string; stamps: Promise<readonly Stamp[]> }>()
  const pendingOf = new Map<string, number>()

  function countPending(scope: string, change: number): void {
    const count = (pendingOf.get(scope) ?? 0) + change
    if (count > 0) pendingOf.set(scope, count)
    else pendingOf.delete(scope)
  }

  return {
    earlier(once, now) {
      const found = pending.get(idOf(once)) ?? findPublish(store, digestOf(once))
      if (!found || ('at' in found && ageOf(found, now) > limits.maxAgeMs)) return undefined
      if (found.hash === once.hash) return Promise.resolve(found.stamps)
      throw keyReused()
    },
    admit({ scope }, stored) {
      const keys = stored + pending.size
      if (!isCrowded(keys, limits)) return
      admitKey(countOf(store, onceCountKey(tagOf(scope))) + (pendingOf.get(scope) ?? 0), keys, limits)
    },
    begin(once, stamps, stored) {
      const id = idOf(once)
      const end = () => {
        pending.delete(id)
        countPending(once.scope, -1)
      }
      const answer = stored.then(() => stamps)
      // Only a second publish with the same key waits for `answer`. The publisher itself learns of a failure by `stored`.
      answer.catch(() => undefined)
      pending.set(id, { hash: once.hash, stamps: answer })
      countPending(once.scope, 1)
      stored.then(end, end)
    },
    changes(made, state, now) {
      times.learn(now, state.last)
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
        if (left === 0 || (isCurrent && !isForgotten(ageOf(found, now), state.keys, limits))) break
        left -= 1
        state.keys = Math.max(0, state.keys - 1)
        removals.push(orderKey)
        // An entry of an earlier version does not name its publisher.
        if (value.length > digestBytes) count(value.subarray(digestBytes), -1)
        // A younger publish may have used the key again.
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

/** A damaged count reads as 0, so its publisher may get more than its share. */
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

/** A damaged entry counts as unknown: its events are in the log, but which ones is unknown. */
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

/** Stores one time, because all events of a publish are appended at once. */
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

/** A short name for a scope, which may be long. */
function tagOf(scope: string): Buffer {
  return createHash('sha256').update(scope).digest().subarray(0, 6)
}

// No header and no subject contains a line break, so no two pairs of scope and key have the same id.
function idOf({ scope, key }: Once): string {
  return `${scope}\n${key}`
}
