import { mkdir, open as openFile, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
// biome-ignore lint/style/noRestrictedImports: an optional peer; this file alone knows it, and loads it when it is used
import type { RootDatabase } from 'lmdb'
import { checkFile } from './file.ts'

/** The ordered keys and values of one file. Reads are of what was last committed, and give copies. */
export interface Store {
  readonly directory: string
  get(key: Buffer): Buffer | undefined
  /** From `start` up to, but not including, `end`. To be walked in one go: it holds a snapshot for as long. */
  range(start: Buffer, end: Buffer): Iterable<Entry>
  /** The last key that is not after `key`, and not before `start`. */
  lastKeyUpTo(key: Buffer, start: Buffer): Buffer | undefined
  /**
   * Makes all changes or none. Resolves when they are as durable as the store was opened for; rejects with
   * `log-unavailable` when they could not be made. One at a time: the caller waits before it calls again.
   */
  write(changes: Changes): Promise<void>
  /** Runs `task`, which reads. Where a page is damaged so that LMDB notices, it throws `log-unavailable`. */
  reading<Result>(task: () => Result): Result
  /**
   * Whether its keys are in order, and as many as its root says. A page whose list of keys is damaged loses others with
   * the next write to it; where it cannot be read at all, this throws. True unseen when there are more than `most`.
   */
  isWhole(most: number): boolean
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

export async function openStore(directory: string, durability: 'disk' | 'os'): Promise<Store> {
  const folder = resolve(directory)
  const { open } = await loadLmdb()
  const path = join(folder, 'data.mdb')
  const database = await opened(folder, async () => {
    const made = await mkdir(folder, { recursive: true })
    await checkFile(path)
    // Without overlapping syncs a commit is: write the pages, fdatasync, write the root through to the disk, done. Its
    // promise then means what it says, and nothing has to be repaired after a power cut.
    const flushing = { overlappingSync: false, noSync: durability === 'os' }
    // Batched by turns, lmdb would reject a promise of its own with every failed commit, which nobody can handle.
    const batching = { eventTurnBatching: false }
    const layout = { keyEncoding: 'binary', encoding: 'binary', cache: false, maxDbs: 1 } as const
    const opened = open<Buffer, Buffer>(path, { ...layout, ...batching, ...flushing })
    // A file whose name is lost with the power is lost as well.
    await syncFolder(folder)
    if (made) await syncFolder(dirname(made))
    return opened
  })
  return storeOn(database, folder)
}

function storeOn(database: RootDatabase<Buffer, Buffer>, directory: string): Store {
  return {
    directory,
    get: (key) => database.getBinary(key),
    range: (start, end) => database.getRange({ start, end }),
    lastKeyUpTo(key, start) {
      for (const found of database.getKeys({ start: key, end: start, reverse: true, limit: 1 })) return found
      // The end of a range is not part of it, whichever way it is walked.
      return database.doesExist(start) ? start : undefined
    },
    async write({ puts, removals }) {
      try {
        await database.batch(() => {
          for (const key of removals) void database.remove(key)
          for (const { key, value } of puts) void database.put(key, value)
        })
      } catch (error) {
        throw await unavailable(`The log in ${directory} cannot write`, directory, await reasonOf(error))
      }
    },
    reading(task) {
      try {
        return task()
      } catch (cause) {
        throw new RejoinError(
          `The log in ${directory} cannot be read here: ${(cause as Error).message}. Its file is damaged; restore it.`,
          { code: 'log-unavailable', cause },
        )
      }
    },
    isWhole(most) {
      const { entryCount } = database.getStats() as { entryCount: number }
      if (entryCount > most) return true
      let count = 0
      let before: Buffer = Buffer.alloc(0)
      for (const key of database.getKeys()) {
        if (Buffer.compare(key, before) <= 0) return false
        before = key
        count += 1
      }
      return count === entryCount
    },
    exclusively: (task) => database.transactionSync(task),
    close: () => database.close(),
  }
}

async function loadLmdb(): Promise<typeof import('lmdb')> {
  try {
    // biome-ignore lint/style/noRestrictedImports: as above
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
    throw await unavailable(`The log in ${folder} cannot be opened`, folder, cause)
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

/** lmdb rejects a commit with a general error, and a promise of that error with the reason. */
async function reasonOf(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<never> }
  if (!commitError) return error
  return commitError.catch((reason: unknown) => reason)
}

async function unavailable(what: string, folder: string, cause: unknown): Promise<RejoinError> {
  const { code, message } = cause as Error & { code?: string | number }
  const reason = (await isFull(folder)) ? 'the disk is full' : (reasons.get(code) ?? message)
  return new RejoinError(`${what}: ${reason}. Try again when that has been seen to.`, {
    code: 'log-unavailable',
    retryable: true,
    cause,
  })
}

/** Asked of the disk, because of a write that was cut short LMDB only says that it failed. */
async function isFull(folder: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder).catch(() => ({ bavail: 1, bsize: Number.POSITIVE_INFINITY }))
  return bavail * bsize < 1024 * 1024
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
