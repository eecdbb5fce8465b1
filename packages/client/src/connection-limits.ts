/** For a time that does not come, and for a wait without an end. */
export const never = Infinity

/**
 * A stream this old that has shown `hello` or an event is good, and failures before it are forgotten. Forgetting them at
 * the response would make a server that accepts and drops be asked without pause.
 */
export const goodAfterMs = 5_000

/** After this share of the time that its rights hold, a stream that can get new ones comes back with them. */
export const renewalShare = 0.9

/** The longest that a server may have us wait, by `retry:` or `Retry-After`, where `maxRetryMs` is not longer. */
export const maxAskedMs = 600_000

/** On top of what a heartbeat may take, for a slow network. */
export const slackMs = 5_000

/** The longest that a connection may take to say something, however rare the hub's heartbeat is. */
export const maxOpenMs = 120_000

/** A stream that is over this soon was cut by something that does not like streams, or by a server that is unwell. */
export const droppedMs = 1_000

/**
 * Three streams in a row that end at once, or two on which no byte arrives, are enough to try another transport. Three
 * that a server cuts as it is restarted, or two requests into a dead network, look the same: the first transport is then
 * tried again soon.
 */
export const faultLimit = 3
export const secondLookMs = 60_000

/** When there is more against it: not often, as each try may cost a silence, and the other one does work. */
export const upgradeMs = 1_800_000

/** In the long run there may be one reload in so many ms, and five may follow each other. */
export const syncEveryMs = 30_000
export const syncBurstMs = 4 * syncEveryMs
