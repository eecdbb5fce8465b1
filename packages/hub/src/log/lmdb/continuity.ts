import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
import { rootBytes, rootIn, transactionOf } from './file.ts'
import { dataName } from './store.ts'

/** Whether each commit continues the one before it. */
export interface Continuity {
  /** Looks at the file. What is overwritten once is so until the next start. Takes some 2 µs. */
  fault(): RejoinError | undefined
  /** Makes a commit. Ask for a fault before, or a copy is continued, and after: only then is it certain that none was. */
  commit(write: () => Promise<void>): Promise<void>
  close(): void
}

/**
 * Watches that the file says what this process last wrote to it. A copy that is written over the file (`cp backup data.mdb`)
 * leaves it the same file to the system. LMDB counts its transactions elsewhere, and would build the next one on the copy: what
 * was acknowledged since would be gone, under a newer event, and nobody could tell.
 *
 * LMDB has two roots, which it writes in turn. So a commit leaves the root of the commit before it as it was, and its own is one
 * transaction later. Where that is not so, it was built on something else.
 */
export function watchContinuity(folder: string): Continuity {
  // Windows lets nobody cut or replace a file that is mapped.
  if (process.platform === 'win32')
    return { fault: () => undefined, commit: (write) => write(), close: () => undefined }
  const file = openSync(join(folder, dataName), 'r')
  const pageSize = pageSizeOf(file)
  // Both roots in one read, and compared as bytes: this is done with every commit.
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
    // A commit that failed may have left its root all the same.
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
      // The disk may answer the next time.
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
