/** The names and figures that both ends of a probe share: the hub, which sends it, and the doctor, which reads it. */

/** The channel of probes. It is below `/events/`, because proxies have their rules for streams there. */
export const probeChannel = 'rejoin.doctor'

/**
 * What a probe does after its first frame, which tells what the hub saw of the request:
 * - `spaced` sends numbered events at a steady pace, with heartbeats between them, and ends
 * - `silent` sends nothing for a while, and ends
 * - `beating` sends heartbeats alone, like an idle stream of this hub, until the doctor leaves
 */
export const probeScripts = ['spaced', 'silent', 'beating'] as const

export type ProbeScript = (typeof probeScripts)[number]

export const spacedEvents = 20
export const spacedEveryMs = 100
export const silentForMs = 6000
/** The hub ends every probe after this time. */
export const longestProbeMs = 120_000
/** A heartbeat follows after this many events. */
export const heartbeatAfter = 4

/** The data of the first frame: what the hub saw of the request, and what it answered. */
export interface ProbeHello {
  /** Random for each answer. Two clients with the same serial got the same answer. */
  readonly serial: string
  readonly version: string
  readonly heartbeatMs: number
  /** `Last-Event-ID`; null when it did not arrive. */
  readonly header: string | null
  /** `?lastEventId=`; null when it did not arrive. */
  readonly query: string | null
  /** Headers that the hub has sent, to compare with those that arrive. */
  readonly sent: Readonly<Record<string, string>>
}

/** The data of an event of a `spaced` probe. */
export interface ProbeTick {
  readonly n: number
  /** When the hub wrote this event, in milliseconds since the start of the probe. */
  readonly atMs: number
}

/** The state of a probe on the hub, for a doctor that has left the probe. */
export interface ProbeSeen {
  readonly state: 'open' | 'closed' | 'unknown'
  /** How long ago the hub saw the probe close. Only with `closed`. */
  readonly closedMsAgo?: number
}

/** Has every kind of character that an id of Rejoin has: upper and lower case, digits, `-` and `_`. It reveals a filter. */
export function probeId(token: string, n: number): string {
  return `v1_Probe-${token}-${n}`
}

/** The form of a doctor's token for a probe. Its length bounds the memory of the hub. */
export const probeToken = /^[a-z0-9]{8,32}$/
