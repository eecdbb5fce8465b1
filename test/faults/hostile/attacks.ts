import type { Attack } from './attack.ts'
import { drips } from './drips.ts'
import { floods } from './floods.ts'
import { scans } from './scans.ts'
import { unread } from './unread.ts'

/** Every attack there is, in the order in which they are made. */
export const attacks: readonly Attack[] = [...unread, ...scans, ...floods, ...drips]

/** Those that are slow, and go on for as long as they are let: for a run that takes its time. */
export const slowAttacks: readonly string[] = [
  ...drips.map(({ name }) => name),
  ...['stalled readers', 'silent connections', 'slow heads'],
]
