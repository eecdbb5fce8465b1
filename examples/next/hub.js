import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'

// What `next dev` loads again after a change is to find this hub, with its events and readers, and not to make another.
globalThis.rejoinHub ??= createHub({ log: memoryLog() })

export const hub = await globalThis.rejoinHub
