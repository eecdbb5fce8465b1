import { statfsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
// biome-ignore lint/style/noRestrictedImports: an optional peer; only its types are named here
import type { RootDatabase } from 'lmdb'
import { invalidOption } from '../../../invalid-option.ts'
import { makeFolder, syncFolder } from './folder.ts'
import { readRoot } from './roots.ts'

/** The ordered keys and values of one file. A read sees the last commit, and returns copies. */
export interface Store {
  readonly directory: string
  get(key: Buffer): Buffer | undefined
  /** From `start` up to, but not including, `end`. Walk it within one turn, because it holds a snapshot until the end. */
  range(start: Buffer, end: Buffer): Iterable<Entry>
  /** From the last key that is not after `start` down to the first that is not before `end`. Walk it within one turn. */
  rangeBack(start: Buffer, end: Buffer): Iterable<Entry>
  /** The keys of a range. It costs a third of `range`, because no value is copied. Walk it within one turn. */
  keys(start: Buffer, end: Buffer): Iterable<Buffer>
  /** The last key that is not after `key`, and not before `start`. */
  lastKeyUpTo(key: Buffer, start: Buffer): Buffer | undefined
  /**
   * Makes all changes or none. Resolves when they are as durable as the store was opened for, and rejects with `log-unavailable`
   * when they could not be made. The caller waits for one write before it begins the next.
   */
  write(changes: Changes): Promise<void>
  /**
   * Runs `task` at once, unless the file has to be opened again after a failed write. `task` has to read before it does anything
   * else, because it may then run a second time. Rejects with `log-unavailable` when LMDB notices a damaged page.
   */
  reading<Result>(task: () => Result | Promise<Result>): Promise<Result>
  /** The bytes of the file that are in use. The file itself may be larger, and does not shrink. Takes some microseconds. */
  usedBytes(): number
  /** Copies the last commit to another file, which must not exist yet. Writes to the store go on meanwhile. */
  copyTo(path: string): Promise<void>
  /** Runs `task` while no other process writes to the file or runs such a task. */
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
    // Without overlapping syncs a commit writes the pages, calls fdatasync, and writes the root through to the disk. Its
    // promise resolves after all of that, and nothing has to be repaired after a power cut.
    const flushing = { overlappingSync: false, noSync: durability === 'os' }
    // With batches per turn, lmdb would reject a promise of its own for every failed commit, which cannot be handled.
    const batching = { eventTurnBatching: false }
    const handle = createHandle(() => open<Buffer, Buffer>(path, { ...layout, ...batching, ...flushing }))
    // Without its entry in the folder, a file is lost after a power cut.
    await syncFolder(folder)
    if (made) await syncFolder(dirname(made))
    return handle
  })
  return storeOn(handle, folder)
}

/** Opens the store of a folder that another process writes to. The file must exist. */
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
      // lmdb leaves the end of a range out, in both directions.
      return database.doesExist(start) ? start : undefined
    },
    async write({ puts, removals }) {
      await opened(directory, async () => handle.ready())
      const { database } = handle
      const what = `The log in ${directory} cannot write`
      // Asks before LMDB does: lmdb 3.5 writes the message of a failed page write into a buffer that is too small, which can
      // end the process some time later.
      if (!hasSpaceFor(spaceOf({ puts, removals }), directory)) throw unavailable(what, 'the disk is full')
      try {
        await database.batch(() => {
          for (const key of removals) void database.remove(key)
          for (const { key, value } of puts) void database.put(key, value)
        })
      } catch (error) {
        const cause = await reasonOf(error)
        const rejection = unavailable(what, wordsFor(cause, directory), cause)
        // When the renewal fails, the next read or write tries it again. This write has its answer already.
        if (handle.isLost()) await handle.renew().catch(() => undefined)
        throw rejection
      }
    },
    async reading(task) {
      const renewal = handle.ready()
      if (renewal) await opened(directory, () => renewal)
      try {
        // Not awaited: when work fails that `task` began after its reads, `task` must not run a second time.
        return task()
      } catch (cause) {
        if (cause instanceof RejoinError) throw cause
        if (!handle.isLost()) throw unreadable(directory, cause)
      }
      await opened(directory, () => handle.renew())
      return task()
    },
    usedBytes() {
      const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } =
        handle.database.getStats() as PageCounts
      return (treeBranchPageCount + treeLeafPageCount + overflowPages) * pageSize
    },
    // Compacts the copy: a file in long use has many free pages.
    copyTo: (path) => handle.database.backup(path, true),
    exclusively: (task) => handle.database.transactionSync(task),
    close: () => handle.close(),
  }
}

type Database = RootDatabase<Buffer, Buffer>

/**
 * The open file, and a way to open it again. When the disk rejects the root that ends a commit, LMDB gives up the handle for
 * good, for reading as well: it cannot know which root the disk has. LMDB has put the old root back by then. A new handle goes
 * on from the old root, and the next commit replaces the failed one.
 */
interface Handle {
  readonly database: Database
  /** Undefined when the handle can be used. Otherwise opens it again, which may fail; each call tries it. */
  ready(): Promise<void> | undefined
  /** Whether LMDB has given the handle up. */
  isLost(): boolean
  /** Opens the file again. */
  renew(): Promise<void>
  close(): Promise<void>
}

function createHandle(open: () => Database): Handle {
  let database = open()
  let isOpen = true
  let renewal: Promise<void> | undefined
  let closing: Promise<void> | undefined

  async function reopen(): Promise<void> {
    // Closes first: LMDB returns the same handle for a file that is still open.
    if (isOpen) await database.close()
    isOpen = false
    database = open()
    isOpen = true
  }

  function renew(): Promise<void> {
    if (closing) return closing
    renewal ??= reopen().finally(() => {
      renewal = undefined
    })
    return renewal
  }

  async function close(): Promise<void> {
    await renewal?.catch(() => undefined)
    if (isOpen) await database.close()
  }

  return {
    get database() {
      return database
    },
    ready: () => (isOpen && !renewal ? undefined : renew()),
    isLost() {
      try {
        // Drops the snapshot, because a read from the old snapshot would still succeed.
        database.resetReadTxn()
        database.getBinary(anyKey)
        return false
      } catch (error) {
        return (error as Error).message.includes('MDB_PANIC')
      }
    },
    renew,
    close() {
      closing ??= close()
      return closing
    },
  }
}

const anyKey = Buffer.from([0])

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
    throw invalidOption('lmdbLog() keeps its events with the package lmdb, which is not here: npm install lmdb.', cause)
  }
}

async function opened<Result>(folder: string, open: () => Promise<Result>): Promise<Result> {
  try {
    return await open()
  } catch (cause) {
    if (cause instanceof RejoinError) throw cause
    if (isNotLmdb(cause)) {
      throw invalidOption(
        `The file data.mdb in ${folder} is not a log of Rejoin, or it is damaged. Choose another folder, or restore it.`,
        cause,
      )
    }
    throw unavailable(`The log in ${folder} cannot be opened`, wordsFor(cause, folder), cause)
  }
}

function unreadable(directory: string, cause: unknown): RejoinError {
  return new RejoinError(
    `The log in ${directory} cannot be read here: ${(cause as Error).message}. Its file is damaged; restore it.`,
    { code: 'log-unavailable', cause },
  )
}

/** lmdb rejects a commit with a general error, whose `commitError` is a promise that rejects with the reason. */
async function reasonOf(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<never> }
  if (!commitError) return error
  return commitError.catch((reason: unknown) => reason)
}

function unavailable(what: string, reason: string, cause?: unknown): RejoinError {
  return new RejoinError(`${what}: ${reason}. Fix this, then retry.`, {
    code: 'log-unavailable',
    retryable: true,
    cause,
  })
}

/** Asks the disk as well, because LMDB gives no reason for a write that was cut short. */
function wordsFor(cause: unknown, folder: string): string {
  const { code, message } = cause as Error & { code?: string | number }
  return hasSpaceFor(0, folder) ? (reasons.get(code) ?? message) : 'the disk is full'
}

/** Takes some 6 µs. */
function hasSpaceFor(bytes: number, folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize >= reserveBytes + bytes
  } catch {
    // `statfs` failed: let the write discover whether there is space.
    return true
  }
}

const reserveBytes = 1024 * 1024

/** The most that a commit adds to the file: its values, and a page for each key. */
function spaceOf({ puts, removals }: Changes): number {
  return puts.reduce((sum, { value }) => sum + value.length, (puts.length + removals.length) * 4096)
}

/** By the error codes of Node, which are names, and of lmdb, which are numbers. */
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

// MDB_CORRUPTED, MDB_PANIC, MDB_VERSION_MISMATCH and MDB_INVALID in lmdb.h.
const notLmdb = [-30796, -30795, -30794, -30793]
