import { copyFile, open, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../../../invalid-option.ts'
import type { Backup, BackupOptions } from '../../contract.ts'
import { openCopyMark, sealCopyMark } from '../format/copy-mark.ts'
import { copyMarkKey, formatKey, stateKey } from '../format/keys.ts'
import { openLogState } from '../format/state.ts'
import { makeFolder, rejectFileAsFolder, syncFolder } from './folder.ts'
import { checkFile } from './pages.ts'
import { readRoot } from './roots.ts'
import { dataName, openStore, openStoreToRead, type Store } from './store.ts'

/**
 * Copies the log of a folder into another folder, while the process that writes to the log goes on. The copy is the log of
 * one moment: everything that was acknowledged before the call is in it.
 *
 * @param directory - the folder of the log
 * @param folder - made if it is not there; must not hold a log
 */
export async function backupLmdb(directory: string, folder: string, options: BackupOptions = {}): Promise<Backup> {
  await rejectMissing(resolve(directory))
  const store = await openStoreToRead(directory)
  try {
    return await backupStore(store, folder, options)
  } finally {
    await store.close()
  }
}

/** Like `backupLmdb`, for a store that is open already. */
export function backupStore(
  store: Pick<Store, 'directory' | 'copyTo' | 'usedBytes'>,
  folder: string,
  options: BackupOptions = {},
): Promise<Backup> {
  const source = join(store.directory, dataName)
  return intoFolder(source, folder, { ...options, totalBytes: store.usedBytes() }, (path) => store.copyTo(path))
}

/**
 * Copies a backup into a folder from which a hub can open it. What was published after the backup was made is unknown. So readers
 * get the events of the backup, and are told of a gap before the first event after the restore.
 *
 * @param backup - the folder of the backup, which stays unchanged
 * @param directory - made if it is not there; must not hold a log
 */
export async function restoreLmdb(backup: string, directory: string, options: BackupOptions = {}): Promise<Backup> {
  const source = join(resolve(backup), dataName)
  await rejectMissing(resolve(backup))
  const { size } = await stat(source)
  return intoFolder(source, directory, { ...options, totalBytes: size }, (path) => copyFile(source, path))
}

/** Makes the copy under another name and renames it when it is whole, so that no hub takes half a copy for a log. */
async function intoFolder(
  source: string,
  directory: string,
  { onProgress, totalBytes }: BackupOptions & { readonly totalBytes: number },
  copyTo: (path: string) => Promise<void>,
): Promise<Backup> {
  const folder = resolve(directory)
  const path = join(folder, dataName)
  await rejectTaken(folder)
  const isCertain = await isContinued(source)
  const partial = join(folder, partialName)
  try {
    await rm(partial, { recursive: true, force: true })
    await makeFolder(partial)
    const stopTelling = onProgress ? tellProgress(join(partial, dataName), totalBytes, onProgress) : undefined
    try {
      await copyTo(join(partial, dataName))
    } finally {
      stopTelling?.()
    }
    const through = await markAsCopy(partial, isCertain)
    await rename(join(partial, dataName), path)
    await syncFolder(folder)
    const { size } = await stat(path)
    onProgress?.({ copiedBytes: size, totalBytes: size })
    return { folder, bytes: size, through }
  } catch (cause) {
    if (cause instanceof RejoinError) throw cause
    throw new RejoinError(`The copy into ${folder} failed: ${(cause as Error).message}. Nothing was left there.`, {
      code: 'log-unavailable',
      cause,
    })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

const partialName = 'copy-under-way'

/** Reports the size of the file at intervals, because LMDB reports no progress of its own. */
function tellProgress(
  path: string,
  totalBytes: number,
  onProgress: NonNullable<BackupOptions['onProgress']>,
): () => void {
  const timer = setInterval(async () => {
    const copied = await stat(path).catch(() => undefined)
    // Never more than the total, so that a progress bar needs no special case.
    if (copied) onProgress({ copiedBytes: Math.min(copied.size, totalBytes), totalBytes })
  }, progressEveryMs)
  return () => clearInterval(timer)
}

const progressEveryMs = 100

/**
 * Whether the newest commit of a log continued the commit before it. The copy does not show that. A process may be writing to the
 * log: then the roots are of different moments, and it takes another look.
 */
async function isContinued(path: string): Promise<boolean> {
  for (let looks = 0; looks < 5; looks += 1) if ((await readRoot(path))?.isContinued) return true
  return false
}

/** Checks the copy and marks it as a copy. Resolves with its newest position. */
async function markAsCopy(directory: string, isSourceContinued: boolean) {
  const store = await openStore(directory, 'disk')
  try {
    await checkFile(directory)
    const stored = store.get(stateKey)
    const state = store.get(formatKey) && stored && openLogState(stateKey, stored)
    if (!state) {
      throw invalidOption('The file that was copied is not a whole log of Rejoin. Choose another folder.')
    }
    const ofSource = store.get(copyMarkKey)
    const isCertain = isSourceContinued && (!ofSource || openCopyMark(ofSource).isCertain)
    await store.write({ puts: [{ key: copyMarkKey, value: sealCopyMark(Date.now(), { isCertain }) }], removals: [] })
    return state.last
  } finally {
    await store.close()
  }
}

async function rejectMissing(folder: string): Promise<void> {
  await rejectFileAsFolder(folder)
  if (await readRoot(join(folder, dataName)).catch((error) => rejectUnreadable(folder, error))) return
  throw invalidOption(`There is no log in ${folder}: it has no file ${dataName}. Name the folder of a log.`)
}

/** An empty file counts as well: another process may be making a log there right now. */
async function rejectTaken(folder: string): Promise<void> {
  await rejectFileAsFolder(folder)
  const file = await open(join(folder, dataName)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    return rejectUnreadable(folder, error)
  })
  if (!file) return
  await file.close()
  throw invalidOption(
    `There is a log in ${folder} already. Move its folder away, or name another: nothing is overwritten.`,
  )
}

function rejectUnreadable(folder: string, cause: Error): never {
  if (cause instanceof RejoinError) throw cause
  throw invalidOption(
    `The folder ${folder} cannot be read: ${cause.message}. Check its path and its permissions.`,
    cause,
  )
}
