import type { Hub, WindowOptions } from '@rejoin/hub'
import type { ReconnectReport, RejectedRequest } from '@rejoin/hub/operations'

/** Tells the operator what the program does: a person at a terminal, or a program that reads the lines. */
export interface Logging {
  /** Called when the hub listens. */
  ready(facts: Readiness): void
  /** From now on, writes lines about the hub's readers. */
  watch(hub: Pick<Hub, 'on'>): void
  /** Called when the program rejected a request before the hub saw it. `watch` covers the hub's own rejections. */
  rejected(request: RejectedRequest): void
  /** Called when a client has reported, after its return, that it had lost its connection. */
  reconnected(report: ReconnectReport): void
  /** Called when an operator has changed something through the admin API. */
  administered(action: AdminAction): void
  /** Called when the certificate's files were read again. With a `cause` they could not be used, and the old ones stay. */
  certificate(outcome: { cause?: unknown }): void
  /** Called for a setup that works, but not well. */
  warned(message: string): void
  /** Called when the program was asked to end, and begins to close its streams. */
  stopping(signal: string): void
  /** Called when the program is about to end because of an unexpected error. */
  failed(cause: unknown): void
  /** Called when the program ends, right before. Writes what was counted instead of being written line by line. */
  ended(): void
}

export interface Readiness {
  version: string
  /** The address of the hub, without a slash at the end. */
  url: string
  /** The address of the admin API, when it has a port of its own. */
  adminUrl?: string
  log: { name: string; window: WindowOptions }
  /** The folder of the log, when it has files. */
  folder?: string
  /** The address of the log, when it is a Redis. */
  address?: string
  /** False when other machines can reach the hub. */
  loopbackOnly: boolean
  /** Whether there are access rules. Without rules, everybody who reaches the hub may read and publish everything. */
  access: boolean
}

export interface AdminAction {
  /** The last part of the request's path, such as `drain`. */
  readonly action: string
  /** The channel, the subject or the connection that was changed, if it was one. */
  readonly target?: string
  readonly ip: string | null
}

export const insecureWarning =
  'WARNING: no access rules are set. Everyone who can reach this address can read and publish everything.'
