import * as v from 'valibot'

/** Retry times by channel or pattern. The hub checks the names. */
export const channelRetries = v.record(
  v.string(),
  v.union([v.literal('adaptive'), v.pipe(v.number(), v.integer(), v.minValue(500), v.maxValue(60_000))]),
)
