import type { Environment } from '../environment.ts'

/**
 * Gives the state of the given channels to readers that have lost part of its history. Must read state that was written
 * before it was published, from the primary; the hub sends every event after the position it noted beforehand.
 */
export type SnapshotHook = (channels: readonly string[]) => unknown

/**
 * The hook's answer as the `snapshot` of a `sync-required`; nothing when it fails, is no JSON, or takes longer than
 * `timeoutMs`. The gap is announced either way.
 */
export async function takeSnapshot(
  hook: SnapshotHook | undefined,
  channels: readonly string[],
  timeoutMs: number,
  environment: Environment,
): Promise<{ snapshot?: unknown }> {
  if (!hook) return {}
  return new Promise((resolve) => {
    const cancel = environment.after(timeoutMs, () => resolve({}))
    void ask(hook, channels)
      .catch(() => ({}))
      .then(resolve)
      .finally(cancel)
  })
}

async function ask(hook: SnapshotHook, channels: readonly string[]): Promise<{ snapshot: unknown }> {
  const snapshot = await hook(channels)
  // Throws here, where it only costs the snapshot, instead of in the middle of the announcement.
  JSON.stringify(snapshot)
  return { snapshot }
}
