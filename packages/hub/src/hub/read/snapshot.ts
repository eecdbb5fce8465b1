import { isAfter, type Point, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { JsonText } from '../json-text.ts'

/**
 * Gives the state of the given channels, for readers that lost a part of their history. Read it from the primary, and write state
 * before you publish it. The hub notes a position before the call, and sends every event after that position.
 */
export type SnapshotHook = (channels: SubscribedChannels, call: SnapshotCall) => unknown

/** The channels and patterns of a subscription, which has at least one. */
export type SubscribedChannels = readonly [string, ...string[]]

export interface SnapshotCall {
  /**
   * Aborted when no reader waits for the state any more, or, with a `TimeoutError`, when `snapshotTimeoutMs` is over. Give it to
   * `fetch`, for example.
   */
  readonly signal: AbortSignal
}

export interface SnapshotOptions {
  /**
   * Gives the current state to readers after a gap. Without this hook, readers are told of the gap and load the state. At most 32
   * calls run at a time; others wait.
   */
  snapshot?: SnapshotHook | undefined
  /**
   * Gives the address from which readers of these channels can load the state themselves. A `sync-required` without a snapshot
   * carries it as `snapshotUrl`. Undefined: no address.
   * @defaultValue none
   */
  snapshotUrl?: ((channels: SubscribedChannels) => string | undefined) | undefined
  /**
   * Names the state that a subscription needs. Readers that need the same state at the same time share one call of the hook.
   * @defaultValue the channels, joined
   */
  snapshotKey?: ((channels: SubscribedChannels) => string) | undefined
  /**
   * How long the snapshot hook may take, in milliseconds. After that, the gap is announced without a snapshot.
   * @defaultValue 5000
   */
  snapshotTimeoutMs?: number | undefined
}

/** A point of the log, and the state there or later. The state is an address, or empty, when the hook gave no snapshot. */
export interface Snapshot {
  readonly at: Point
  readonly state: {
    /** JSON text. */
    readonly snapshot?: string
    readonly snapshotUrl?: string
  }
}

export interface Snapshots {
  /**
   * A snapshot at `notBefore` or later. An older one would move the cursor back, and the reader would meet the same gap again.
   *
   * @param isGone - whether the reader has left. A call of the hook that nobody waits for is ended.
   */
  take(channels: readonly string[], notBefore: Position, isGone: () => boolean): Promise<Snapshot>
}

export function createSnapshots(
  {
    snapshot: hook,
    snapshotUrl,
    snapshotKey = (channels) => channels.join('\n'),
    snapshotTimeoutMs = 5000,
  }: SnapshotOptions,
  environment: Environment,
  live: { readonly head: Point },
): Snapshots {
  /** The newest call for each state, running or queued. */
  const shared = new Map<string, Call>()
  const queue = new Set<Call>()
  const running = new Set<Call>()
  let isWatching = false

  function addressOf(channels: SubscribedChannels): Snapshot['state'] {
    const url = snapshotUrl?.(channels)
    return url === undefined ? {} : { snapshotUrl: url }
  }

  function begin(key: string, channels: SubscribedChannels): Call {
    // The position comes first. Events between the position and the read of the state are sent again. The other way round, they
    // would be neither in the state nor sent. A reader that shares this snapshot later gets this position for the same reason.
    const call: Call = { key, channels, at: live.head, readers: [], ...deferred(), end: new AbortController() }
    const cancel = environment.after(snapshotTimeoutMs, () => {
      call.end.abort(new DOMException(`It took over ${snapshotTimeoutMs} ms.`, 'TimeoutError'))
      finish(call)
    })
    call.end.signal.addEventListener('abort', cancel)
    shared.set(key, call)
    queue.add(call)
    return call
  }

  function runNext(hook: SnapshotHook): void {
    for (const call of queue) {
      if (running.size >= maxRunning) break
      queue.delete(call)
      running.add(call)
      void ask(hook, call).then(
        (text) => finish(call, text),
        () => finish(call),
      )
    }
    if (running.size > 0) watch()
  }

  /** Ends calls that nobody waits for. */
  function watch(): void {
    if (isWatching) return
    isWatching = true
    environment.after(watchEveryMs, () => {
      isWatching = false
      for (const call of [...running, ...queue]) if (call.readers.every((isGone) => isGone())) finish(call)
      if (running.size > 0) watch()
    })
  }

  /** @param snapshot - JSON text; left out, readers are told without a snapshot. */
  function finish(call: Call, snapshot?: string): void {
    const { key, channels, at, end } = call
    if (!running.delete(call) && !queue.delete(call)) return
    end.abort()
    if (shared.get(key) === call) shared.delete(key)
    call.resolve({ at, state: snapshot === undefined ? addressOf(channels) : { snapshot } })
    if (hook) runNext(hook)
  }

  return {
    async take(selectors, notBefore, isGone) {
      const channels = selectors as SubscribedChannels
      if (!hook) return { at: live.head, state: addressOf(channels) }
      const key = snapshotKey(channels)
      const known = shared.get(key)
      const isGood = (call: Call) =>
        call.at.branch.epoch === live.head.branch.epoch && !isAfter(notBefore, call.at.position)
      const call = known && isGood(known) ? known : begin(key, channels)
      call.readers.push(isGone)
      runNext(hook)
      return call.taken
    },
  }
}

/** One call of the hook, and the readers that share it. */
interface Call {
  readonly key: string
  readonly channels: SubscribedChannels
  readonly at: Point
  /** For each reader, whether it has left. */
  readonly readers: (() => boolean)[]
  readonly taken: Promise<Snapshot>
  resolve(snapshot: Snapshot): void
  /** Aborted when the call is over. */
  readonly end: AbortController
}

// Each call may use a connection, which `connectionRoom` of the program reserves.
const maxRunning = 32
const watchEveryMs = 250

function deferred(): Pick<Call, 'taken' | 'resolve'> {
  let resolve: Call['resolve'] = () => undefined
  const taken = new Promise<Snapshot>((settle) => {
    resolve = settle
  })
  return { taken, resolve }
}

/** The state as JSON text; undefined without a state. Rejects for a value that is no JSON: only the snapshot is lost. */
async function ask(hook: SnapshotHook, { channels, end }: Call): Promise<string | undefined> {
  const state = await hook(channels, { signal: end.signal })
  return state instanceof JsonText ? state.text : JSON.stringify(state)
}
