import type { PutIfAbsent } from '../contract.ts'
import { createValueMap } from '../values.ts'
import type { Commits } from './commit/commits.ts'
import type { Entry, Store } from './files/store.ts'
import { ByteWriter, unseal } from './format/bytes.ts'
import { nameOf, valueKey, valueRange } from './format/keys.ts'

/** `putIfAbsent` in the store, so that a restart does not bring a used ticket back. All texts are in memory as well. */
export function createStoredValues(store: Store, commits: Commits, now: () => number): PutIfAbsent {
  const values = createValueMap(now)
  const pending = new Map<string, Promise<undefined>>()
  for (const { key, value } of store.range(valueRange.start, valueRange.end)) {
    const found = openValue(key, value)
    if (found) values.restore(nameOf(key), found.text, found.until)
  }

  return async (name, text, forMs) => {
    const standing = values.get(name)
    if (standing !== undefined) {
      // When the commit of that text fails, no text stands there, and the caller has to ask again.
      await pending.get(name)
      return standing
    }
    const { until, dropped } = values.add(name, text, forMs)
    const put = sealValue(valueKey(name), text, until)
    const stored = commits.submit({
      size: 1 + dropped.length,
      apply(draft) {
        draft.change({ puts: [put], removals: dropped.filter((each) => each !== name).map(valueKey) })
        return undefined
      },
    })
    pending.set(name, stored)
    try {
      await stored
    } catch (error) {
      values.remove(name)
      throw error
    } finally {
      pending.delete(name)
    }
    return text
  }
}

const writer = new ByteWriter()

function sealValue(key: Buffer, text: string, until: number): Entry {
  // 0 stands for ever: there is no number for infinity.
  writer.number(Number.isFinite(until) ? Math.ceil(until) : 0)
  writer.text(text)
  return { key, value: writer.seal(key) }
}

function openValue(key: Buffer, sealed: Buffer): { text: string; until: number } | undefined {
  const reader = unseal(key, sealed)
  if (!reader) return undefined
  const until = reader.number() || Number.POSITIVE_INFINITY
  return { until, text: reader.text() }
}
