import { type Branch, isAfter, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'

/**
 * Gives the state of the given channels, for readers that lost a part of their history. Read it from the primary, and write state
 * before you publish it. The hub notes a position before the call, and sends every event after that position.
 */
export type SnapshotHook = (channels: readonly string[]) => unknown

export interface SnapshotOptions {
  /** Gives the current state to readers after a gap. Without this hook, readers are told of the gap and load the state. */
  snapshot?: SnapshotHook
  /**
   * Gives the address from which readers of these channels can load the state themselves. A `sync-required` without a snapshot
   * carries it as `snapshotUrl`. Undefined: no address.
   * @defaultValue none
   */
  snapshotUrl?: (channels: readonly string[]) => string | undefined
  /**
   * Names the state that a subscription needs. Readers that need the same state at the same time share one call of the hook.
   * @defaultValue the channels, joined
   */
  snapshotKey?: (channels: readonly string[]) => string
  /**
   * How long the snapshot hook may take, in milliseconds. After that, the gap is announced without a snapshot.
   * @defaultValue 5000
   */
  snapshotTimeoutMs?: number
}

/** A position, and the state at that position or later. The state is an address, or empty, when the hook gave no snapshot. */
export interface Snapshot {
  readonly position: Position
  readonly branch: Branch
  readonly state: { readonly snapshot?: unknown; readonly snapshotUrl?: string }
}

export interface Snapshots {
  /**
   * A snapshot at `notBefore` or later. An older one would move the cursor back, and the reader would meet the same gap again.
   */
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
    // The position comes first. Events between the position and the read of the state are sent again. The other way round, they
    // would be neither in the state nor sent. A reader that shares this snapshot later gets this position for the same reason.
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
  // A value that is no JSON throws here, and only the snapshot is lost. Later, it would break the announcement of the gap.
  JSON.stringify(snapshot)
  return { snapshot }
}
