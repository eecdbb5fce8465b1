import type { ProxyName } from './proxy-name.ts'

/** All checks of the doctor, in the order in which they are shown. */
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

/** The result of one check. */
export interface Check {
  readonly name: CheckName
  /**
   * `fault`: readers lose events, get them late, or get those of other readers. `hint`: it works, and could work better.
   * `unknown`: the doctor cannot see it from outside, or was not asked to check it.
   */
  readonly state: 'good' | 'fault' | 'hint' | 'unknown'
  /** The finding, in one line. */
  readonly summary: string
  /** The measured values, if there are any. */
  readonly figures?: Readonly<Record<string, number>>
  /** The likely cause, and what to change. Only for a fault or a hint. */
  readonly remedy?: Remedy
}

export interface Remedy {
  /** The program that likely causes the fault. */
  readonly culprit: string
  /** The consequence of the fault for readers. */
  readonly cost: string
  /** What to change, and where. Several alternatives when the doctor does not know the proxy. */
  readonly changes: readonly Change[]
}

export interface Change {
  /** A program and its file or section. */
  readonly where: string
  /** Lines to write into that file. A line that begins with `remove: ` is to be removed. */
  readonly lines: readonly string[]
}

/** The findings of the doctor. */
export interface Report {
  /** The address that was given. */
  readonly url: string
  /** After redirects: the address of the hub, without a slash at the end; for other servers, that of the stream. */
  readonly address: string
  readonly server: Server
  readonly checks: readonly Check[]
  /** How long the examination took. */
  readonly ms: number
}

export interface Server {
  /**
   * `program`: `rejoin serve`, which answers probes. `hub`: a hub of Rejoin in another program; its `hello` tells which cursor
   * arrived. `other`: any other server of event streams.
   */
  readonly kind: 'program' | 'hub' | 'other'
  /** The version of `rejoin`; only for `program`. */
  readonly version?: string
  /** The proxy in front, if it shows itself or was named by `--proxy`. */
  readonly proxy?: ProxyName
  /** The proxy's own name for itself, from its headers. */
  readonly proxyText?: string
}
