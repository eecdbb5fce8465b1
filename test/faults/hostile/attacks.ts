import type { Attack } from './attack.ts'
import { crowding } from './crowding.ts'
import { drips } from './drips.ts'
import { floods } from './floods.ts'
import { http2Attacks } from './http2.ts'
import { scans } from './scans.ts'
import { unread } from './unread.ts'

/** Every attack on a hub without TLS, in the order in which they are made. */
export const plainAttacks: readonly Attack[] = [...unread, ...scans, ...floods, ...crowding, ...drips]

/** Every attack there is. */
export const attacks: readonly Attack[] = [...plainAttacks, ...http2Attacks]

/** Those that are slow, and go on for as long as they are let: for a run that takes its time. */
export const slowAttacks: readonly string[] = [
  ...drips.map(({ name }) => name),
  ...['stalled readers', 'silent connections', 'slow heads'],
]
