import { closeSync, lstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
import { rootBytes, rootIn, transactionOf } from './roots.ts'
import { dataName } from './store.ts'
import { socketName } from './writer-lock.ts'

export interface Watch {
  /** Why the folder no longer holds what was opened and written. It stays until the next start. A check takes some 10 µs. */
  fault(): RejoinError | undefined
  /**
   * Makes a commit. Check for a fault before it, so that the commit does not continue a copy, and after it: only then has the
   * commit certainly continued the log.
   */
  commit(write: () => Promise<void>): Promise<void>
  close(): void
}

/**
 * Watches the files of an open log for two mistakes of an operator.
 *
 * A file is removed or replaced: the process could still write to the old file, would answer publishes with `disk`, and the
 * events would go with the process. Without the socket, a second writer could start.
 *
 * An older copy is written over the open file (`cp backup data.mdb`): to the system it stays the same file. LMDB keeps its
 * transaction count elsewhere, and would build the next commit on the copy. All events acknowledged since the copy would be lost
 * in silence. LMDB writes its two roots in turn. So a commit leaves the root of the commit before it unchanged, and its own root
 * is one transaction later. A commit without these two marks was built on another file.
 */
export function watchFiles(folder: string): Watch {
  // Windows neither removes nor overwrites a mapped file, and the lock is not a file there.
  if (process.platform === 'win32')
    return { fault: () => undefined, commit: (write) => write(), close: () => undefined }
  const files = [dataName, socketName].map((name) => ({ name, path: join(folder, name), id: idOf(join(folder, name)) }))
  const file = openSync(join(folder, dataName), 'r')
  const pageSize = pageSizeOf(file)
  // One read brings both roots, and the comparison is of bytes, because every commit does this.
  const bytes = Buffer.alloc(pageSize + rootBytes)
  const even = bytes.subarray(0, rootBytes)
  const odd = bytes.subarray(pageSize)
  /** The root of the last commit. */
  let last: Buffer | undefined
  let step: 'none' | 'under way' | 'failed' | 'made' = 'none'
  let found: RejoinError | undefined

  function findReplaced(): RejoinError | undefined {
    const replaced = files.find(({ path, id }) => idOf(path) !== id)
    return replaced && changed(replaced.name, folder, 'removed or replaced')
  }

  function compareRoots(): RejoinError | undefined {
    const overwritten = () => changed(dataName, folder, 'overwritten or cut')
    if (readSync(file, bytes, 0, bytes.length, 0) < bytes.length) return overwritten()
    const isEven = transactionOf(even) > transactionOf(odd)
    const newest = isEven ? even : odd
    const older = isEven ? odd : even
    last ??= Buffer.from(newest)
    // A failed commit may have written its root all the same.
    if (step !== 'none' && older.equals(last) && transactionOf(newest) === transactionOf(last) + 1n) {
      if (step === 'under way') return undefined
      newest.copy(last)
      step = 'none'
      return undefined
    }
    return step !== 'made' && newest.equals(last) ? undefined : overwritten()
  }

  function fault(): RejoinError | undefined {
    try {
      found ??= findReplaced() ?? compareRoots()
      return found
    } catch (cause) {
      // Not kept in `found`: the disk may answer the next time.
      return unreadable(folder, cause)
    }
  }

  fault()
  return {
    fault,
    async commit(write) {
      step = 'under way'
      try {
        await write()
        step = 'made'
      } catch (error) {
        step = 'failed'
        throw error
      }
    },
    close: () => closeSync(file),
  }
}

/** Undefined when there is no such file. */
function idOf(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat && `${stat.dev} ${stat.ino}`
}

function pageSizeOf(file: number): number {
  const bytes = Buffer.alloc(rootBytes)
  readSync(file, bytes, 0, rootBytes, 0)
  return rootIn(bytes)?.pageSize ?? rootBytes
}

function changed(name: string, folder: string, how: string): RejoinError {
  return new RejoinError(
    `The file ${name} in ${folder} was ${how} while the log was open. Nothing more can be stored. ` +
      'Put the folder back from a copy, or leave it as it is, and start again; readers that lose something are told.',
    { code: 'log-unavailable', retryable: true },
  )
}

function unreadable(folder: string, cause: unknown): RejoinError {
  return new RejoinError(
    `The file ${dataName} in ${folder} cannot be read: ${(cause as Error).message}. Fix this, then retry.`,
    { code: 'log-unavailable', retryable: true, cause },
  )
}
