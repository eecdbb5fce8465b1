import * as v from 'valibot'

/** Times to wait, by channel or pattern. Whether a name is one, the hub says. */
export const channelRetries = v.record(
  v.string(),
  v.union([v.literal('adaptive'), v.pipe(v.number(), v.integer(), v.minValue(500), v.maxValue(60_000))]),
)
