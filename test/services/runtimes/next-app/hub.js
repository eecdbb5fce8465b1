import { openTalkingHub } from './talking-hub.js'

// What is loaded again while one develops is to find the hub, and not to make another.
globalThis.rejoinHub ??= openTalkingHub(process.env)

export const hub = await globalThis.rejoinHub
