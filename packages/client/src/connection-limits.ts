/** A time that never comes, or a wait without an end. */
export const never = Infinity

/**
 * A stream that has brought `hello` or an event is good at this age, and earlier failures are forgotten. If the
 * response alone were enough, a server that accepts and drops streams would get requests without a pause.
 */
export const goodAfterMs = 5_000

/**
 * A stream that can get new credentials comes back with them after this share of the time for which its rights hold.
 */
export const renewalShare = 0.9

/** The longest wait that a server can ask for by `retry:` or `Retry-After`, unless `maxRetryMs` is longer. */
export const maxAskedMs = 600_000

/**
 * For so many retries, about a minute, a wait is at most `quickMs` where the server has few clients. A hub with more
 * clients asks most of them for a longer time than that (§4.11).
 */
export const quickRetries = 32
export const quickMs = 3000

/** Added to the time that a heartbeat may take, for a slow network. */
export const slackMs = 5_000

/** The longest time that a new connection may stay silent, however rare the hub's heartbeats are. */
export const maxOpenMs = 120_000

/** A stream that ends this soon was cut by a proxy that does not support streams, or by a server in trouble. */
export const droppedMs = 1_000

/**
 * The count of faults at which the next transport is used: three streams in a row that end at once, or two on which no
 * byte arrives. A server that restarts, or a dead network, can look the same. So when the count only just gets here,
 * the first transport is tried again soon, after `secondLookMs`.
 */
export const faultLimit = 3
export const secondLookMs = 60_000

/**
 * When the count of faults is higher, the first transport is tried again after this time. Not sooner: each try may cost
 * a long silence, while the other transport works.
 */
export const upgradeMs = 1_800_000

/** In the long run there is one reload per `syncEveryMs`. Five reloads may follow each other at once. */
export const syncEveryMs = 30_000
export const syncBurstMs = 4 * syncEveryMs
