import type { Hub, WindowOptions } from '@rejoin/hub'
import type { ReconnectReport, RejectedRequest } from '@rejoin/hub/operations'

/** Says what the program does: to a person at a terminal, or to whatever reads its lines. */
export interface Logging {
  /** The hub listens. */
  ready(facts: Readiness): void
  /** From now on, says what becomes of the hub's readers. */
  watch(hub: Pick<Hub, 'on'>): void
  /** The program rejected a request before the hub saw it. Of the others it says so by itself, once it watches the hub. */
  rejected(request: RejectedRequest): void
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

export interface AdminAction {
  /** The last part of its path, such as `drain`. */
  readonly action: string
  /** What it was done to, if to one thing: a channel, a subject, a connection. */
  readonly target?: string
  readonly ip: string | null
}

export const insecureWarning =
  'WARNING: no access rules are set. Everyone who can reach this address can read and publish everything.'
