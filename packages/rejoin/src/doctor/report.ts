import type { ProxyName } from './proxy-name.ts'

/** Everything that the doctor looks at, in the order in which it is shown. */
export const checkNames = [
  'redirect',
  'stream',
  'header-cursor',
  'query-cursor',
  'ids',
  'heartbeats',
  'compression',
  'caching',
  'disconnect',
  'silence',
  'idle',
  'cors',
  'http-version',
] as const

export type CheckName = (typeof checkNames)[number]

/** What came of one check. */
export interface Check {
  readonly name: CheckName
  /**
   * `fault`: readers lose events, wait for them or see what is not theirs. `hint`: it works, and something else would work better.
   * `unknown`: it cannot be told from outside, or was not asked for.
   */
  readonly state: 'good' | 'fault' | 'hint' | 'unknown'
  /** What was seen, in one line. */
  readonly summary: string
  /** What was measured, where something was. */
  readonly figures?: Readonly<Record<string, number>>
  /** Whose doing it likely is, and what to change. Only with a fault or a hint. */
  readonly remedy?: Remedy
}

export interface Remedy {
  /** Who likely does it. */
  readonly culprit: string
  /** What it costs readers. */
  readonly cost: string
  /** What to change where. There are several when the doctor does not know the program in question. */
  readonly changes: readonly Change[]
}

export interface Change {
  /** A program and its file or section. */
  readonly where: string
  /** As they stand in that file. A line that begins with `remove: ` is to go. */
  readonly lines: readonly string[]
}

/** What the doctor found. */
export interface Report {
  /** What was asked for. */
  readonly url: string
  /** The hub, after redirects, without a slash at the end; for other servers the stream. */
  readonly address: string
  readonly server: Server
  readonly checks: readonly Check[]
  /** How long it took. */
  readonly ms: number
}

export interface Server {
  /**
   * `program`: `rejoin serve`, which answers probes. `hub`: a hub of Rejoin in another program, whose `hello` tells what arrived.
   * `other`: another server of event streams.
   */
  readonly kind: 'program' | 'hub' | 'other'
  /** The version of `rejoin`, if it says so. */
  readonly version?: string
  /** The program in front, if it shows itself or was named. */
  readonly proxy?: ProxyName
  /** As it names itself. */
  readonly proxyText?: string
}
