/**
 * Why a reader cannot be given everything after its cursor. The first five are verdicts on the cursor itself; the others
 * are the hub's doing: a replay longer than it allows, a channel whose past was invalidated, a channel new to the
 * subscription.
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
