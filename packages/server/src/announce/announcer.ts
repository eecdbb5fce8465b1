import type { Hub, WindowOptions } from '@rejoin/hub'

/** Says what the program does: to a person at a terminal, or to whatever reads its lines. */
export interface Announcer {
  /** The hub listens. */
  ready(facts: Readiness): void
  /** From now on, says what becomes of the hub's readers. */
  watch(hub: Pick<Hub, 'on'>): void
  /** A client told, once it was back, that it had lost its connection. */
  reconnected(report: ReconnectReport): void
  /** An operator changed something through the admin API. */
  administered(action: AdminAction): void
  /** The files of the certificate were read again. With a cause they could not be used, and the old ones stay. */
  certificate(outcome: { cause?: unknown }): void
  /** Something that works is set up so that it will not serve well. */
  warned(message: string): void
  /** The program was asked to end and lets its readers go. */
  stopping(signal: string): void
  /** The program failed in a way nobody had thought of, and is about to end for it. */
  failed(cause: unknown): void
}

export interface Readiness {
  version: string
  /** Without a slash at the end. */
  url: string
  /** Where the admin API is, when it has a port of its own. */
  adminUrl?: string
  log: { name: string; window: WindowOptions }
  /** Where the log keeps its files, when it has any. */
  folder?: string
  /** Where the log is, when it is on another machine. */
  address?: string
  /** False when other machines can reach the hub. */
  loopbackOnly: boolean
  /** Whether there are access rules. Without any, whoever reaches the hub may read and publish everything. */
  access: boolean
}

/** What `@rejoin/client` reports of one reconnect, and from where it came. All of it is the client's word. */
export interface ReconnectReport {
  readonly attempt: number
  readonly delayMs: number
  /** Of the stream, without its query. */
  readonly url: string
  /** When the connection was lost, ISO 8601. */
  readonly timestamp: string
  readonly ip: string | null
  readonly userAgent: string | null
}

export interface AdminAction {
  /** The last part of its path, such as `drain`. */
  readonly action: string
  /** What it was done to, if to one thing: a channel, a subject, a connection. */
  readonly target?: string
  readonly ip: string | null
}

export const insecureWarning =
  'WARNING: no access rules are set. Everyone who can reach this address can read and publish everything.'
