import type { Hub, WindowOptions } from '@rejoin/hub'

/** Says what the program does: to a person at a terminal, or to whatever reads its lines. */
export interface Announcer {
  /** The hub listens. */
  ready(facts: Readiness): void
  /** From now on, says what becomes of the hub's readers. */
  watch(hub: Pick<Hub, 'on'>): void
  /** The program was asked to end and lets its readers go. */
  stopping(signal: string): void
}

export interface Readiness {
  version: string
  /** Without a slash at the end. */
  url: string
  log: { name: string; window: WindowOptions }
  /** Where the log keeps its files, when it has any. */
  folder?: string
  /** False when other machines can reach the hub; without access rules they may read and publish everything. */
  loopbackOnly: boolean
}

export const insecureWarning =
  'WARNING: no access rules are set. Everyone who can reach this address can read and publish everything.'
