import { mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../../../invalid-option.ts'

/**
 * Makes a folder and the folders above it. Resolves with the topmost folder that it made, undefined when all were there.
 *
 * Node's own recursive `mkdir` never ends where the file system takes no new folder, as in `/proc`: it takes the answer ENOENT
 * for a missing parent folder, and tries again.
 */
export async function makeFolder(folder: string): Promise<string | undefined> {
  try {
    return await makeOne(folder)
  } catch (error) {
    if (!isMissing(error) || dirname(folder) === folder) throw error
  }
  const above = await makeFolder(dirname(folder))
  try {
    const made = await makeOne(folder)
    return above ?? made
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    throw invalidOption(
      `No folder can be made at ${folder}: the file system there takes none. Name another folder.`,
      cause,
    )
  }
}

/** Undefined when the folder was there. */
async function makeOne(folder: string): Promise<string | undefined> {
  try {
    await mkdir(folder)
    return folder
  } catch (error) {
    const entry = await stat(folder).catch(() => undefined)
    if (entry?.isDirectory()) return undefined
    if (entry || isBelowFile(error)) throw fileInTheWay(folder, entry ? 'is' : 'goes through')
    throw error
  }
}

/** Flushes the entries of a folder. Otherwise a new file can be missing after a power cut although its bytes are on the disk. */
export async function syncFolder(folder: string): Promise<void> {
  // Windows has no handle of a folder, and flushes its entries by itself.
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Rejects a file where the folder of a log is expected. */
export async function rejectFileAsFolder(path: string): Promise<void> {
  const entry = await stat(path).catch((error) => (isBelowFile(error) ? 'below' : undefined))
  if (entry === 'below') throw fileInTheWay(path, 'goes through')
  if (entry && !entry.isDirectory()) throw fileInTheWay(path, 'is')
}

function fileInTheWay(path: string, how: 'is' | 'goes through'): RejoinError {
  return invalidOption(`The path ${path} ${how} a file. Name a folder, or a path where there is nothing yet.`)
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

function isBelowFile(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOTDIR'
}
