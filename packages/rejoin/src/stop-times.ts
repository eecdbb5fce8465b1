/**
 * How a stop spends its time.
 *
 * A proxy learns from `/readyz` that a hub stops, and asks every second or so. Until it has asked, it sends readers and publishers.
 * It also keeps connections, and sends the next publish on one of them. A proxy may not repeat a publish, so it answers 502 when
 * that connection ends at this moment. So behind a proxy a hub goes on for a while after `/readyz` fails, and again for a while
 * after it has stopped listening.
 */
export function stopTimes(withinMs: number, { trustProxy, readers }: StopFacts): StopTimes {
  const noticeMs = trustProxy ? Math.min(longestNoticeMs, withinMs / 2) : 0
  const lingerMs = trustProxy ? Math.min(longestLingerMs, withinMs / 5) : 0
  return { noticeMs, drainMs: Math.min(withinMs - noticeMs - lingerMs, readers * letGoEveryMs), lingerMs }
}

export interface StopFacts {
  /** Whether all requests come through a proxy. */
  readonly trustProxy: boolean
  readonly readers: number
}

export interface StopTimes {
  /** `/readyz` fails, and everything else goes on. */
  readonly noticeMs: number
  /** The streams are closed, one after the other. */
  readonly drainMs: number
  /** Nothing new is accepted, and requests on open connections are answered. */
  readonly lingerMs: number
}

// The files in deploy/ ask every second, and need up to two failures. The rest is for a busy machine.
const longestNoticeMs = 2500
const longestLingerMs = 1000
// 200 readers a second return without a noticeable load. With few readers, the program need not wait for the whole `drainMs`.
const letGoEveryMs = 5
