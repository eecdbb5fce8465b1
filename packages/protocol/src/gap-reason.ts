/**
 * Why a reader cannot get everything after its cursor. The first five are verdicts on the cursor (§3.2).
 * `replay-limit`: the replay would be longer than the hub allows. `forced`: a channel was invalidated after the cursor.
 * `added`: a channel is new to the subscription.
 */
export const gapReasons = [
  'expired',
  'unknown-id',
  'version',
  'epoch',
  'ahead',
  'replay-limit',
  'forced',
  'added',
] as const

export type GapReason = (typeof gapReasons)[number]
