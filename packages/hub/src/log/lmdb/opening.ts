import { open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createClock,
  createEpoch,
  createIdFormats,
  type History,
  type IdCodec,
  type IdFormats,
  latest,
  mergeBranches,
  openBranch,
  origin,
  type Position,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { drawBranchStep } from '../branch-step.ts'
import { checkFile } from './check.ts'
import { watchContinuity } from './continuity.ts'
import { readRoot } from './file.ts'
import { openFormat, sealFormat } from './format.ts'
import { watchIdentity } from './identity.ts'
import { afterChannels, channelKey, copyMarkKey, feedRange, formatKey, stateKey } from './keys.ts'
import { type LogState, openChannelState, openLogState, sealLogState } from './state.ts'
import { type Changes, dataName, openStore, type Store } from './store.ts'
import { takeWriterLock } from './writer-lock.ts'

export interface OpenedLog {
  readonly store: Store
  readonly state: LogState
  readonly history: History
  readonly formats: IdFormats
  /** Why the folder no longer holds what was opened and written; undefined as long as it does. */
  fault(): RejoinError | undefined
  /** Throws the fault, if there is one. */
  assertThere(): void
  /** Writes to the store. Only if there is no `fault` afterwards is it certain that the changes continue what was there. */
  write(changes: Changes): Promise<void>
  close(): Promise<void>
}

export interface OpeningOptions {
  readonly directory: string
  /** How a log that is made here writes its ids; one that is there already has to know it. */
  readonly codec: IdCodec | undefined
  readonly durability: 'disk' | 'os'
  readonly environment: Environment
}

/**
 * Opens the log of a folder for this process alone, or makes one, on a branch of its own. Nothing in a folder tells whether
 * it is the one that was closed last, or an older copy of it that was put back.
 */
export async function openLog(options: OpeningOptions): Promise<OpenedLog> {
  const store = await openStore(options.directory, options.durability)
  const lock = await takeWriterLock(store.directory, store.exclusively).catch(async (error) => {
    await store.close()
    throw error
  })
  const release = async () => {
    await store.close()
    await lock.release()
  }
  try {
    const { state, history, formats } = await restore(store, options)
    const removal = watchIdentity(store.directory)
    const continuity = watchContinuity(store.directory)
    const fault = () => removal() ?? continuity.fault()
    return {
      store,
      state,
      history,
      formats,
      fault,
      assertThere() {
        const found = fault()
        if (found) throw found
      },
      write: (changes) => continuity.commit(() => store.write(changes)),
      async close() {
        continuity.close()
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

async function restore(store: Store, { codec, environment }: OpeningOptions): Promise<Restored> {
  await checkFile(store)
  const root = await readRoot(join(store.directory, dataName))
  const sealed = store.get(formatKey)
  if (!sealed) {
    for (const _entry of store.range(Buffer.from([0]), Buffer.from([255]))) refuseForeign(store.directory)
    const formats = createIdFormats([{ codec: codec ?? ulid() }])
    return startBranch(store, { state: emptyState, history: [], formats }, environment)
  }
  const { formats, ...format } = openFormat(formatKey, sealed, store.directory, codec)
  const isCopy = store.get(copyMarkKey) !== undefined
  const history = isCopy ? renamed(format.history, environment) : format.history
  const stored = store.get(stateKey)
  const state = stored && openLogState(stateKey, stored)
  // Of what the process before has written, nothing is certain when its last commit continued an older copy.
  const certain = root?.isContinued || isCopy ? undefined : history.at(-1)?.first
  const found = { history, formats, certain }
  if (!state) return startBranch(store, { state: rebuildState(store, history), ...found }, environment)
  await checkChannels(store, state)
  return startBranch(store, { state, ...found }, environment)
}

/**
 * The branches of a backup, as one of a new name: what it holds can be read, and no id of before is good. What was published after
 * the backup was made is lost, and a reader that was away since before that would otherwise miss it in silence.
 */
function renamed(history: History, { random }: Environment): History {
  const [oldest] = history
  const newest = history.at(-1)
  if (!oldest || !newest) return history
  return [{ epoch: createEpoch(random), number: newest.number + drawBranchStep(random), first: oldest.first }]
}

/**
 * An entry whose name is damaged is not found under the right one, and its channel would look as if it had never been. So
 * all are looked at, 1 µs each; where there are so many that a start would take long, the sweep does it soon after.
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

interface Restored {
  readonly state: LogState
  readonly history: History
  readonly formats: IdFormats
}

interface Found extends Restored {
  /**
   * Everything that was acknowledged up to here is held.
   * @defaultValue the newest position
   */
  readonly certain?: Position | undefined
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
 * Goes on from what is there, on a branch of its own. A reader whose cursor is at or before the newest event goes on, one that
 * has seen more is told: what it saw is in another copy of this folder, or was lost with it.
 */
async function startBranch(
  store: Store,
  { state, history, formats, certain = state.last }: Found,
  { now, random }: Environment,
): Promise<Restored> {
  const isFirst = history.length === 0
  const { range } = formats
  // In a millisecond of its own: ids of one millisecond are sorted by their epoch, which is drawn.
  const minMs = isFirst ? range.minMs : Math.max(range.minMs, state.last.ms + 1)
  const first = createClock({ ...range, minMs, now, last: isFirst ? undefined : state.last }).next()
  const fork = isFirst ? undefined : certain
  const step = drawBranchStep(random)
  const opened = openBranch(history, { epoch: createEpoch(random), first, fork, step })
  const restored = { state: { ...state, last: first }, history: mergeBranches(opened, maxBranches), formats }
  await store.write({
    puts: [
      { key: formatKey, value: sealFormat(formatKey, restored) },
      { key: stateKey, value: sealLogState(stateKey, restored.state) },
    ],
    removals: [copyMarkKey],
  })
  return restored
}

// Some 100 bytes each, read and written at every start.
const maxBranches = 4000

/** From the channels, when the log's own state is damaged. What it knew of forgotten ones is gone, so all of them are. */
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
  // Nobody reads what is left of the feed, because everything up to here counts as lost; it goes with time.
  const feedEntries = [...store.range(feedRange.start, feedRange.end)].length
  return { ...emptyState, last, forgottenThrough: last, nextChannel, channels, feedLast: last, feedEntries, heldBytes }
}

/** With 'os', the last commits may still be on their way to the disk when the log is closed. */
async function flush(directory: string): Promise<void> {
  const file = await open(join(directory, dataName), 'r+')
  await file.datasync().finally(() => file.close())
}

function refuseForeign(directory: string): never {
  throw new RejoinError(`The file data.mdb in ${directory} is not a log of Rejoin. Choose another folder.`, {
    code: 'invalid-option',
  })
}
