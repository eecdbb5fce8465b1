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

/** Why a log no longer has an event, the gravest first. A gap in several channels is announced with the gravest. */
const losses = ['forced', 'epoch', 'expired'] as const

export type LossReason = (typeof losses)[number]

export function gravestLoss(reasons: readonly (LossReason | undefined)[]): LossReason | undefined {
  return losses.find((loss) => reasons.includes(loss))
}
