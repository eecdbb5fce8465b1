import type { WindowOptions } from '@rejoin/hub'
import * as v from 'valibot'

const bound = v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)))

/** Windows by channel or pattern. The log checks the names. */
export const channelWindows = v.record(
  v.string(),
  v.strictObject({ maxEvents: bound, maxAgeMs: bound, maxBytes: bound } satisfies Record<keyof WindowOptions, unknown>),
)
