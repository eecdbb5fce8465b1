import { type Branch, isAfter, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'

/**
 * Gives the state of the given channels to readers that have lost part of its history. Must read state that was written
 * before it was published, from the primary; the hub sends every event after the position it noted beforehand.
 */
export type SnapshotHook = (channels: readonly string[]) => unknown

export interface SnapshotOptions {
  /** Gives the current state to readers that lost something. Without this hook they are told of the gap, and load the state. */
  snapshot?: SnapshotHook
  /**
   * Gives the address from which readers of these channels can load the state themselves. `sync-required` carries it as
   * `snapshotUrl` where it carries no snapshot. Undefined: no address.
   * @defaultValue none
   */
  snapshotUrl?: (channels: readonly string[]) => string | undefined
  /**
   * Names the state that a subscription needs. Readers with the same name that come together share one call of the hook.
   * @defaultValue the channels, joined
   */
  snapshotKey?: (channels: readonly string[]) => string
  /**
   * How long the snapshot hook may take, in milliseconds. After that the gap is announced without it.
   * @defaultValue 5000
   */
  snapshotTimeoutMs?: number
}

/** A position, and the state at that position or later, or where to load it; neither when the hook failed or took too long. */
export interface Snapshot {
  readonly position: Position
  readonly branch: Branch
  readonly state: { readonly snapshot?: unknown; readonly snapshotUrl?: string }
}

export interface Snapshots {
  /** A snapshot whose position is not before `notBefore`: an older one would send its reader back, and alarm it twice. */
  take(channels: readonly string[], notBefore: Position): Promise<Snapshot>
}

export function createSnapshots(
  {
    snapshot: hook,
    snapshotUrl,
    snapshotKey = (channels) => channels.join('\n'),
    snapshotTimeoutMs = 5000,
  }: SnapshotOptions,
  environment: Environment,
  live: { readonly head: Position; readonly branch: Branch },
): Snapshots {
  const inFlight = new Map<string, { position: Position; branch: Branch; taking: Promise<Snapshot> }>()

  function addressOf(channels: readonly string[]): Snapshot['state'] {
    const url = snapshotUrl?.(channels)
    return url === undefined ? {} : { snapshotUrl: url }
  }

  function begin(hook: SnapshotHook, key: string, channels: readonly string[]): Promise<Snapshot> {
    // The position comes first: events that fall between it and the reading of the state are sent again; the other way
    // round they would be in neither. A reader that joins this snapshot later gets this position, for the same reason.
    const { head: position, branch } = live
    const taking = new Promise<Snapshot>((resolve) => {
      const finish = (state: Snapshot['state']) => {
        cancel()
        if (inFlight.get(key)?.taking === taking) inFlight.delete(key)
        resolve({ position, branch, state })
      }
      const without = () => finish(addressOf(channels))
      const cancel = environment.after(snapshotTimeoutMs, without)
      void ask(hook, channels).then((state) => (state.snapshot === undefined ? without() : finish(state)), without)
    })
    inFlight.set(key, { position, branch, taking })
    return taking
  }

  return {
    async take(channels, notBefore) {
      if (!hook) return { position: live.head, branch: live.branch, state: addressOf(channels) }
      const key = snapshotKey(channels)
      const shared = inFlight.get(key)
      const isGood = shared?.branch.epoch === live.branch.epoch && !isAfter(notBefore, shared.position)
      return shared && isGood ? shared.taking : begin(hook, key, channels)
    },
  }
}

async function ask(hook: SnapshotHook, channels: readonly string[]): Promise<{ snapshot: unknown }> {
  const snapshot = await hook(channels)
  // Throws here, where it only costs the snapshot, instead of in the middle of the announcement.
  JSON.stringify(snapshot)
  return { snapshot }
}
