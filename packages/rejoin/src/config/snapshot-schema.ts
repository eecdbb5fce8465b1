import * as v from 'valibot'
import type { SnapshotRule } from '../snapshots.ts'

const address = v.pipe(
  v.string(),
  v.regex(/^https?:\/\/[^\s]+$/, 'has to be an address that begins with http:// or https://'),
)

/** The sources of snapshots, by channel or pattern. */
export const snapshotRules: v.GenericSchema<Record<string, SnapshotRule>> = v.record(
  v.string(),
  v.union([
    v.strictObject({ url: v.pipe(v.string(), v.minLength(1)) }),
    v.strictObject({
      webhook: address,
      authorization: v.optional(v.pipe(v.string(), v.minLength(1))),
      maxBytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
    }),
  ]),
)
