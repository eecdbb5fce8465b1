import { open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createEpoch,
  createIdFormats,
  createPositionClock,
  type History,
  type IdCodec,
  latest,
  mergeBranches,
  openBranch,
  origin,
  type Position,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Environment } from '../../../environment.ts'
import { invalidOption } from '../../../invalid-option.ts'
import { drawBranchStep } from '../../branch-step.ts'
import { openCopyMark } from '../format/copy-mark.ts'
import { afterChannels, channelKey, copyMarkKey, feedRange, formatKey, stateKey } from '../format/keys.ts'
import { openFormat, type StoredLog, sealFormat, withinRange } from '../format/log-format.ts'
import { addMark } from '../format/marks.ts'
import { type LogState, openChannelState, openLogState, sealLogState } from '../format/state.ts'
import { checkFile } from './pages.ts'
import { readRoot } from './roots.ts'
import { type Changes, dataName, openStore, type Store } from './store.ts'
import { watchFiles } from './watch.ts'
import { takeWriterLock, type WriterLock, writerGone } from './writer-lock.ts'

export interface OpenedLog extends StoredLog {
  readonly store: Store
  /** Why the folder no longer holds the files that were opened and written; undefined as long as it does. */
  fault(): RejoinError | undefined
  /** Throws the fault, if there is one. */
  assertThere(): void
  /** Writes to the store. Rejects with the fault, if the changes do not certainly continue the log. */
  write(changes: Changes): Promise<void>
  close(): Promise<void>
}

export interface OpeningOptions {
  readonly directory: string
  /** The codec of a new log. An existing log has to know it. */
  readonly codec: IdCodec | undefined
  readonly durability: 'disk' | 'os'
  readonly lockTimeoutMs: number
  readonly environment: Environment
  onWarning(message: string): void
}

/**
 * Opens the log of a folder for this process alone, or makes one. Every opening starts a branch: nothing in a folder tells
 * whether it is the folder that was closed last, or an older copy that was put back.
 */
export async function openLog(options: OpeningOptions): Promise<OpenedLog> {
  const { store, lock } = await openLocked(options)
  const release = async () => {
    await store.close()
    await lock.release()
  }
  try {
    const restored = await restore(store, options)
    const watch = watchFiles(store.directory)
    const assertThere = () => {
      const found = watch.fault()
      if (found) throw found
    }
    return {
      ...restored,
      store,
      fault: watch.fault,
      assertThere,
      async write(changes) {
        await watch.commit(() => store.write(changes))
        assertThere()
      },
      async close() {
        watch.close()
        await store.close()
        if (options.durability === 'os') await flush(store.directory)
        await lock.release()
      },
    }
  } catch (cause) {
    await release()
    if (cause instanceof RejoinError) throw cause
    const reason = (cause as Error).message
    throw new RejoinError(
      `The log in ${store.directory} cannot be opened: ${reason}. Restore it, or choose another folder.`,
      { code: 'log-unavailable', cause },
    )
  }
}

/** Opens the store for this process alone. Waits for another process that writes to it, as in a deployment, to end. */
async function openLocked(options: OpeningOptions): Promise<{ store: Store; lock: WriterLock }> {
  const { lockTimeoutMs, onWarning } = options
  const deadline = performance.now() + lockTimeoutMs
  let warned = false
  for (;;) {
    const store = await openStore(options.directory, options.durability)
    try {
      const lock = await takeWriterLock(store.directory, store.exclusively)
      if (lock) return { store, lock }
    } catch (error) {
      await store.close()
      throw error
    }
    // Not kept open while this process waits: LMDB gives one process a single handle for a file, and the writer may be in this
    // process too.
    await store.close()
    if (performance.now() >= deadline) throw lockedBy(store.directory, lockTimeoutMs)
    if (!warned) onWarning(`Another process writes to the log in ${store.directory}. Waiting for it to end.`)
    warned = true
    await writerGone(store.directory, deadline)
  }
}

function lockedBy(folder: string, lockTimeoutMs: number): RejoinError {
  const waited = lockTimeoutMs > 0 ? ` It was waited for ${lockTimeoutMs} ms.` : ''
  return new RejoinError(
    `Another process writes to the log in ${folder}.${waited} End it, or choose another folder; a log has one writer.`,
    { code: 'log-unavailable', retryable: true },
  )
}

async function restore(store: Store, { codec, environment }: OpeningOptions): Promise<StoredLog> {
  await checkFile(store.directory)
  const root = await readRoot(join(store.directory, dataName))
  const sealed = store.get(formatKey)
  if (!sealed) {
    for (const _entry of store.range(Buffer.from([0]), Buffer.from([255]))) rejectForeign(store.directory)
    const formats = createIdFormats([{ codec: codec ?? ulid() }])
    return startBranch(store, { state: emptyState, history: [], formats, marks: [] }, environment)
  }
  const format = openFormat(formatKey, sealed, store.directory, codec)
  const stored = store.get(stateKey)
  const storedState = stored && openLogState(stateKey, stored)
  const isWhole = storedState !== undefined
  const readState = storedState ?? rebuildState(store, format.history)
  const found = withinRange({ ...format, state: readState }, codec, store.directory)
  const copyMark = store.get(copyMarkKey)
  // When the last commit of the process before continued an older copy, none of its events is certain.
  const isCertain = root?.isContinued && (!copyMark || openCopyMark(copyMark).isCertain)
  const certain = isCertain ? undefined : found.history.at(-1)?.first
  if (isWhole) await checkChannels(store, found.state)
  return startBranch(store, { ...found, certain, isCopy: copyMark !== undefined }, environment)
}

/**
 * Looks at the entries of all channels, 1 µs each. An entry with a damaged name cannot be found by the right name, so its
 * channel would look as if it had never been. When there are too many channels for a quick start, the sweep finds such entries
 * soon after.
 */
async function checkChannels(store: Store, state: LogState): Promise<void> {
  if (state.channels > checkedAtOpen) return
  const damaged: Buffer[] = []
  let count = 0
  for (const { key, value } of store.range(channelKey(''), afterChannels)) {
    count += 1
    if (!openChannelState(key, value)) damaged.push(key)
  }
  if (damaged.length === 0 && count === state.channels) return
  state.forgottenThrough = state.last
  state.channels = count - damaged.length
  const puts = [{ key: stateKey, value: sealLogState(stateKey, state) }]
  await store.write({ puts, removals: damaged })
}

const checkedAtOpen = 200_000

interface Found extends StoredLog {
  /**
   * The log holds everything that was acknowledged up to this position.
   * @defaultValue the newest position
   */
  readonly certain?: Position | undefined
  /** The log is a copy that no hub has opened yet. What was published after the copy was made is lost. */
  readonly isCopy?: boolean
}

const emptyState: LogState = {
  last: origin,
  forgottenThrough: origin,
  nextChannel: 0,
  channels: 0,
  keys: 0,
  feedLast: origin,
  feedEntries: 0,
  heldBytes: 0,
}

/**
 * Opens a branch that continues the events of the folder. A reader whose cursor is at or before the newest event goes on. A
 * reader that has seen more is told of a gap: its events are in another copy of this folder, or were lost.
 *
 * On a copy, the branch begins with a mark. The cursor of a reader that was away does not tell that it has missed the events which
 * came after the copy.
 */
async function startBranch(
  store: Store,
  { certain, isCopy = false, ...found }: Found,
  { now, random }: Environment,
): Promise<StoredLog> {
  const { state, history, formats } = found
  const isFirst = history.length === 0
  const { range } = formats
  // The branch begins in a millisecond of its own: ids of one millisecond sort by their epoch, which is random.
  const minMs = isFirst ? range.minMs : Math.max(range.minMs, state.last.ms + 1)
  const first = createPositionClock({ ...range, minMs, now, last: isFirst ? undefined : state.last }).next()
  const fork = isFirst ? undefined : (certain ?? state.last)
  const step = drawBranchStep(random)
  const opened = openBranch(history, { epoch: createEpoch(random), first, fork, step })
  const { marks, forgotten } = isCopy ? addMark(found.marks, first) : { marks: found.marks, forgotten: origin }
  const forgottenThrough = latest(state.forgottenThrough, forgotten)
  const restored: StoredLog = {
    state: { ...state, last: first, forgottenThrough },
    history: mergeBranches(opened, maxBranches),
    formats,
    marks,
  }
  await store.write({
    puts: [
      { key: formatKey, value: sealFormat(formatKey, restored) },
      { key: stateKey, value: sealLogState(stateKey, restored.state) },
    ],
    removals: [copyMarkKey],
  })
  return restored
}

// A branch takes some 100 bytes, which every start reads and writes.
const maxBranches = 4000

/**
 * Rebuilds a damaged state of the log from the channels. What the forgotten channels had lost is unknown, so every
 * unknown channel counts as one that has lost everything.
 */
function rebuildState(store: Store, history: History): LogState {
  let last = history.at(-1)?.first ?? origin
  let nextChannel = 0
  let channels = 0
  let heldBytes = 0
  for (const { key, value } of store.range(channelKey(''), afterChannels)) {
    const channel = openChannelState(key, value)
    channels += 1
    if (!channel) continue
    if (channel.agedAt) heldBytes += channel.bytes
    last = latest(last, channel.newest)
    if (channel.ended) last = latest(last, channel.ended)
    nextChannel = Math.max(nextChannel, channel.number + 1)
  }
  // Patterns have lost everything up to here, so the old entries of the feed are never read. They expire.
  const feedEntries = [...store.range(feedRange.start, feedRange.end)].length
  return { ...emptyState, last, forgottenThrough: last, nextChannel, channels, feedLast: last, feedEntries, heldBytes }
}

/** With durability `os`, the last commits may still be on their way to the disk when the log is closed. */
async function flush(directory: string): Promise<void> {
  const file = await open(join(directory, dataName), 'r+')
  await file.datasync().finally(() => file.close())
}

function rejectForeign(directory: string): never {
  throw invalidOption(`The file data.mdb in ${directory} is not a log of Rejoin. Choose another folder.`)
}
