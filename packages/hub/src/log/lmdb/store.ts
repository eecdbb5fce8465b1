import { statfsSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
import { readRoot } from './file.ts'
import { makeFolder } from './folder.ts'
import { createHandle, type Handle } from './handle.ts'

/** The ordered keys and values of one file. Reads are of what was last committed, and give copies. */
export interface Store {
  readonly directory: string
  get(key: Buffer): Buffer | undefined
  /** From `start` up to, but not including, `end`. To be walked in one go: it holds a snapshot for as long. */
  range(start: Buffer, end: Buffer): Iterable<Entry>
  /** From the last key that is not after `start` down to the first that is not before `end`. To be walked in one go. */
  rangeBack(start: Buffer, end: Buffer): Iterable<Entry>
  /** The keys of a range alone, which costs a third of it: no value is copied. To be walked in one go. */
  keys(start: Buffer, end: Buffer): Iterable<Buffer>
  /** The last key that is not after `key`, and not before `start`. */
  lastKeyUpTo(key: Buffer, start: Buffer): Buffer | undefined
  /**
   * Makes all changes or none. Resolves when they are as durable as the store was opened for; rejects with
   * `log-unavailable` when they could not be made. One at a time: the caller waits before it calls again.
   */
  write(changes: Changes): Promise<void>
  /**
   * Runs `task`, which reads first of all, and at once unless the file has to be opened again after a failed write; `task`
   * may then run a second time. Where a page is damaged so that LMDB notices, it rejects with `log-unavailable`.
   */
  reading<Result>(task: () => Result | Promise<Result>): Promise<Result>
  /** Whether its keys are as many as its root says, 0.12 µs each. Where a page cannot be read, this throws. */
  isWhole(): boolean
  /** The bytes of the file that are in use; the file itself may be larger, and does not shrink. Takes some microseconds. */
  usedBytes(): number
  /** Writes what is committed now to another file, which must not be there yet. Writes to the store go on meanwhile. */
  copyTo(path: string): Promise<void>
  /** Runs `task` while no other process writes to the file or does the same. */
  exclusively<Result>(task: () => Result): Result
  close(): Promise<void>
}

export interface Entry {
  readonly key: Buffer
  readonly value: Buffer
}

export interface Changes {
  readonly puts: readonly Entry[]
  readonly removals: readonly Buffer[]
}

/** The file in the folder of a log. */
export const dataName = 'data.mdb'

export async function openStore(directory: string, durability: 'disk' | 'os'): Promise<Store> {
  const folder = resolve(directory)
  const { open } = await loadLmdb()
  const path = join(folder, dataName)
  const handle = await opened(folder, async () => {
    const made = await makeFolder(folder)
    await readRoot(path)
    // Without overlapping syncs a commit is: write the pages, fdatasync, write the root through to the disk, done. Its
    // promise then means what it says, and nothing has to be repaired after a power cut.
    const flushing = { overlappingSync: false, noSync: durability === 'os' }
    // Batched by turns, lmdb would reject a promise of its own with every failed commit, which nobody can handle.
    const batching = { eventTurnBatching: false }
    const handle = createHandle(() => open<Buffer, Buffer>(path, { ...layout, ...batching, ...flushing }))
    // A file whose name is lost with the power is lost as well.
    await syncFolder(folder)
    if (made) await syncFolder(dirname(made))
    return handle
  })
  return storeOn(handle, folder)
}

/** The same for a folder that another process writes to. The file must be there. */
export async function openStoreToRead(
  directory: string,
): Promise<Pick<Store, 'directory' | 'usedBytes' | 'copyTo' | 'close'>> {
  const folder = resolve(directory)
  const { open } = await loadLmdb()
  const path = join(folder, dataName)
  const handle = await opened(folder, async () =>
    createHandle(() => open<Buffer, Buffer>(path, { ...layout, overlappingSync: false, readOnly: true })),
  )
  return storeOn(handle, folder)
}

const layout = { keyEncoding: 'binary', encoding: 'binary', cache: false, maxDbs: 1 } as const

function storeOn(handle: Handle, directory: string): Store {
  return {
    directory,
    get: (key) => handle.database.getBinary(key),
    range: (start, end) => handle.database.getRange({ start, end }),
    *rangeBack(start, end) {
      for (const entry of handle.database.getRange({ start, reverse: true })) {
        if (Buffer.compare(entry.key, end) < 0) return
        yield entry
      }
    },
    keys: (start, end) => handle.database.getKeys({ start, end }),
    lastKeyUpTo(key, start) {
      const { database } = handle
      for (const found of database.getKeys({ start: key, end: start, reverse: true, limit: 1 })) return found
      // The end of a range is not part of it, whichever way it is walked.
      return database.doesExist(start) ? start : undefined
    },
    async write({ puts, removals }) {
      await opened(directory, async () => handle.ready())
      const { database } = handle
      const what = `The log in ${directory} cannot write`
      // LMDB is not to find out by itself: lmdb 3.5 notes the write of a page that failed in a buffer that is too small for
      // the note, which can end the process some time later.
      if (!hasRoomFor(roomOf({ puts, removals }), directory)) throw unavailable(what, 'the disk is full')
      try {
        await database.batch(() => {
          for (const key of removals) void database.remove(key)
          for (const { key, value } of puts) void database.put(key, value)
        })
      } catch (error) {
        const cause = await reasonOf(error)
        const rejection = unavailable(what, wordsFor(cause, directory), cause)
        // When that fails, the next read or write tries again; this one has its answer.
        if (handle.isLost()) await handle.renew().catch(() => undefined)
        throw rejection
      }
    },
    async reading(task) {
      const renewal = handle.ready()
      if (renewal) await opened(directory, () => renewal)
      try {
        // Not awaited: what it began with its reads is not begun again when that fails.
        return task()
      } catch (cause) {
        if (cause instanceof RejoinError) throw cause
        if (!handle.isLost()) throw unreadable(directory, cause)
      }
      await opened(directory, () => handle.renew())
      return task()
    },
    isWhole() {
      const { database } = handle
      const { entryCount } = database.getStats() as { entryCount: number }
      return database.getKeysCount() === entryCount
    },
    usedBytes() {
      const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } =
        handle.database.getStats() as PageCounts
      return (treeBranchPageCount + treeLeafPageCount + overflowPages) * pageSize
    },
    // Without the pages that are free, which a file of long use has many of.
    copyTo: (path) => handle.database.backup(path, true),
    exclusively: (task) => handle.database.transactionSync(task),
    close: () => handle.close(),
  }
}

/** As lmdb counts them. */
interface PageCounts {
  readonly pageSize: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
}

async function loadLmdb(): Promise<typeof import('lmdb')> {
  try {
    // biome-ignore lint/style/noRestrictedImports: an optional peer, loaded when it is used
    return await import('lmdb')
  } catch (cause) {
    throw new RejoinError('lmdbLog() keeps its events with the package lmdb, which is not here: npm install lmdb.', {
      code: 'invalid-option',
      cause,
    })
  }
}

async function opened<Result>(folder: string, open: () => Promise<Result>): Promise<Result> {
  try {
    return await open()
  } catch (cause) {
    if (cause instanceof RejoinError) throw cause
    if (isNotLmdb(cause)) {
      throw new RejoinError(
        `The file data.mdb in ${folder} is not a log of Rejoin, or it is damaged. Choose another folder, or restore it.`,
        { code: 'invalid-option', cause },
      )
    }
    throw unavailable(`The log in ${folder} cannot be opened`, wordsFor(cause, folder), cause)
  }
}

/** Without this, the entry of a new file can be missing after a power cut although its bytes are on the disk. */
export async function syncFolder(folder: string): Promise<void> {
  // Windows has no handle for that; there the file system sees to it.
  if (process.platform === 'win32') return
  const handle = await openFile(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function unreadable(directory: string, cause: unknown): RejoinError {
  return new RejoinError(
    `The log in ${directory} cannot be read here: ${(cause as Error).message}. Its file is damaged; restore it.`,
    { code: 'log-unavailable', cause },
  )
}

/** lmdb rejects a commit with a general error, and a promise of that error with the reason. */
async function reasonOf(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<never> }
  if (!commitError) return error
  return commitError.catch((reason: unknown) => reason)
}

function unavailable(what: string, reason: string, cause?: unknown): RejoinError {
  return new RejoinError(`${what}: ${reason}. Try again when that has been seen to.`, {
    code: 'log-unavailable',
    retryable: true,
    cause,
  })
}

/** The disk is asked as well: of a write that was cut short, LMDB only says that it failed. */
function wordsFor(cause: unknown, folder: string): string {
  const { code, message } = cause as Error & { code?: string | number }
  return hasRoomFor(0, folder) ? (reasons.get(code) ?? message) : 'the disk is full'
}

/** Takes some 6 µs. */
function hasRoomFor(bytes: number, folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= reserveBytes + bytes
  } catch {
    // Whether it can be written to is then for the write to say.
    return true
  }
}

const reserveBytes = 1024 * 1024

/** At most what a commit adds to the file: the values, and for each key the page it stands on. */
function roomOf({ puts, removals }: Changes): number {
  return puts.reduce((sum, { value }) => sum + value.length, (puts.length + removals.length) * 4096)
}

/** By the names that Node gives as codes, and the numbers that lmdb gives. */
const reasons = new Map<string | number | undefined, string>([
  ['EROFS', 'the file system is read-only'],
  [30, 'the file system is read-only'],
  ['EACCES', 'the permission is missing'],
  [13, 'the permission is missing'],
  ['ENOSPC', 'the disk is full'],
  [28, 'the disk is full'],
  ['EIO', 'the disk reports an error'],
  [5, 'the disk reports an error'],
])

function isNotLmdb(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return typeof code === 'number' && notLmdb.includes(code)
}

// MDB_CORRUPTED, MDB_PANIC, MDB_VERSION_MISMATCH, MDB_INVALID of lmdb.h.
const notLmdb = [-30796, -30795, -30794, -30793]
