/** What the two ends of a probe agree on: the hub that sends it, and the doctor that reads it. */

/**
 * The channel of probes. It lies below `/events/`, because a proxy has its rules for streams there: a probe under another path
 * would test other rules.
 */
export const probeChannel = 'rejoin.doctor'

/**
 * What a probe does after it has said what the hub saw of the request:
 * - `spaced` sends numbered events at a steady pace, with heartbeats between them, and ends
 * - `silent` sends nothing for a while, and ends
 * - `beating` sends heartbeats as an idle stream of this hub does, until the doctor has seen enough
 */
export const probeScripts = ['spaced', 'silent', 'beating'] as const

export type ProbeScript = (typeof probeScripts)[number]

export const spacedEvents = 20
export const spacedEveryMs = 100
export const silentForMs = 6000
/** No probe is open for longer. */
export const longestProbeMs = 120_000
/** After how many events a heartbeat follows. */
export const heartbeatAfter = 4

/** What the hub saw of a request, and what it answered: the data of the first frame. */
export interface ProbeHello {
  /** Drawn anew for each answer, so that two answers with the same one are the same answer. */
  readonly serial: string
  readonly version: string
  readonly heartbeatMs: number
  /** `Last-Event-ID`, null when it did not arrive. */
  readonly header: string | null
  /** `?lastEventId=`, null when it did not arrive. */
  readonly query: string | null
  /** What the hub put into its own answer, to compare with what arrives. */
  readonly sent: Readonly<Record<string, string>>
}

/** The data of an event of a `spaced` probe. */
export interface ProbeTick {
  readonly n: number
  /** When the hub wrote it, in milliseconds since it wrote the first frame. */
  readonly atMs: number
}

/** What the hub knows of a probe, for a doctor that has left it. */
export interface ProbeSeen {
  readonly state: 'open' | 'closed' | 'unknown'
  /** How long ago the hub saw the end of it. Only when it is closed. */
  readonly closedMsAgo?: number
}

/** Upper and lower case, digits, `-` and `_`: all that stands in an id of ours. A filter that touches one of them is noticed. */
export function probeId(token: string, n: number): string {
  return `v1_Probe-${token}-${n}`
}

/** How a doctor may name a probe; its length bounds what the hub keeps. */
export const probeToken = /^[a-z0-9]{8,32}$/
