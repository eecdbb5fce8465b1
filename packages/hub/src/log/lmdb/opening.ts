import { open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createClock,
  createEpoch,
  createIdFormats,
  type History,
  type IdCodec,
  latest,
  mergeBranches,
  openBranch,
  origin,
  RejoinError,
} from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { drawBranchStep } from '../branch-step.ts'
import { idsOf } from '../ids-of.ts'
import { checkFile } from './check.ts'
import { formatVersion, openFormat, sealFormat } from './format.ts'
import { watchIdentity } from './identity.ts'
import { afterChannels, channelKey, feedRange, formatKey, stateKey } from './keys.ts'
import { type LogState, openChannelState, openLogState, sealLogState } from './state.ts'
import { dataName, openStore, type Store } from './store.ts'
import { takeWriterLock } from './writer-lock.ts'

export interface OpenedLog {
  readonly store: Store
  readonly state: LogState
  readonly history: History
  /** Why the folder no longer holds what was opened; undefined as long as it does. */
  fault(): RejoinError | undefined
  close(): Promise<void>
}

export interface OpeningOptions {
  readonly directory: string
  readonly codec: IdCodec
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
    const { state, history } = await restore(store, options)
    return {
      store,
      state,
      history,
      fault: watchIdentity(store.directory),
      async close() {
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
  const sealed = store.get(formatKey)
  if (!sealed) {
    for (const _entry of store.range(Buffer.from([0]), Buffer.from([255]))) refuseForeign(store.directory)
    return startBranch(store, { state: emptyState, history: [] }, codec, environment)
  }
  const { history } = openFormat(formatKey, sealed, store.directory, codec)
  const stored = store.get(stateKey)
  const state = stored && openLogState(stateKey, stored)
  if (!state) return startBranch(store, { state: rebuildState(store, history), history }, codec, environment)
  await checkChannels(store, state)
  return startBranch(store, { state, history }, codec, environment)
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
}

const emptyState: LogState = {
  last: origin,
  forgottenThrough: origin,
  nextChannel: 0,
  channels: 0,
  keys: 0,
  feedLast: origin,
  feedEntries: 0,
}

/**
 * Goes on from what is there, on a branch of its own. A reader whose cursor is at or before the newest event goes on, one that
 * has seen more is told: what it saw is in another copy of this folder, or was lost with it.
 */
async function startBranch(
  store: Store,
  { state, history }: Restored,
  codec: IdCodec,
  { now, random }: Environment,
): Promise<Restored> {
  const isFirst = history.length === 0
  const { range } = createIdFormats([{ codec }])
  // In a millisecond of its own: ids of one millisecond are sorted by their epoch, which is drawn.
  const minMs = isFirst ? range.minMs : Math.max(range.minMs, state.last.ms + 1)
  const first = createClock({ ...range, minMs, now, last: isFirst ? undefined : state.last }).next()
  const fork = isFirst ? undefined : state.last
  const step = drawBranchStep(random)
  const opened = openBranch(history, { epoch: createEpoch(random), first, fork, step })
  const restored = { state: { ...state, last: first }, history: mergeBranches(opened, maxBranches) }
  const format = { version: formatVersion, ids: idsOf(codec), history: restored.history }
  await store.write({
    puts: [
      { key: formatKey, value: sealFormat(formatKey, format) },
      { key: stateKey, value: sealLogState(stateKey, restored.state) },
    ],
    removals: [],
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
  for (const { key, value } of store.range(channelKey(''), afterChannels)) {
    const channel = openChannelState(key, value)
    channels += 1
    if (!channel) continue
    last = latest(last, channel.newest)
    if (channel.ended) last = latest(last, channel.ended)
    nextChannel = Math.max(nextChannel, channel.number + 1)
  }
  // Nobody reads what is left of the feed, because everything up to here counts as lost; it goes with time.
  const feedEntries = [...store.range(feedRange.start, feedRange.end)].length
  return { ...emptyState, last, forgottenThrough: last, nextChannel, channels, feedLast: last, feedEntries }
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
