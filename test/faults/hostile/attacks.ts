import type { Attack } from './attack.ts'
import { floods } from './floods.ts'
import { scans } from './scans.ts'
import { unread } from './unread.ts'

/** Every attack there is, in the order in which they are made. */
export const attacks: readonly Attack[] = [...unread, ...scans, ...floods]
