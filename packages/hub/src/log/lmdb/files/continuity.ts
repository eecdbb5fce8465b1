import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
import { rootBytes, rootIn, transactionOf } from './roots.ts'
import { dataName } from './store.ts'

/** Watches that each commit continues the commit before it. */
export interface Continuity {
  /** Looks at the file, in some 2 µs. A fault stays until the next start. */
  fault(): RejoinError | undefined
  /**
   * Makes a commit. The caller asks for a fault before it, so that the commit does not continue a copy, and after it: only then
   * is it certain that it did not.
   */
  commit(write: () => Promise<void>): Promise<void>
  close(): void
}

/**
 * Watches that the file holds what this process last wrote to it. Somebody may write a copy over the open file
 * (`cp backup data.mdb`), and to the system it stays the same file. LMDB keeps its transaction count elsewhere, and would build
 * the next commit on the copy. All events acknowledged since the copy would be lost, and nobody could tell.
 *
 * LMDB has two roots, which it writes in turn. So a commit leaves the root of the commit before it unchanged, and its own root is
 * one transaction later. A commit without these two marks was built on another file.
 */
export function watchContinuity(folder: string): Continuity {
  // On Windows nobody can cut or replace a mapped file.
  if (process.platform === 'win32')
    return { fault: () => undefined, commit: (write) => write(), close: () => undefined }
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

  function compareRoots(): RejoinError | undefined {
    if (readSync(file, bytes, 0, bytes.length, 0) < bytes.length) return overwritten(folder)
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
    return step !== 'made' && newest.equals(last) ? undefined : overwritten(folder)
  }

  function fault(): RejoinError | undefined {
    if (found) return found
    try {
      found = compareRoots()
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

function pageSizeOf(file: number): number {
  const bytes = Buffer.alloc(rootBytes)
  readSync(file, bytes, 0, rootBytes, 0)
  return rootIn(bytes)?.pageSize ?? rootBytes
}

function overwritten(folder: string): RejoinError {
  return new RejoinError(
    `The file ${dataName} in ${folder} was overwritten or cut while the log was open. Nothing more can be stored. ` +
      'Put the folder back from a copy, or leave it as it is, and start again; readers that lose something are told.',
    { code: 'log-unavailable', retryable: true },
  )
}

function unreadable(folder: string, cause: unknown): RejoinError {
  return new RejoinError(
    `The file ${dataName} in ${folder} cannot be read: ${(cause as Error).message}. Try again when that has been seen to.`,
    { code: 'log-unavailable', retryable: true, cause },
  )
}
