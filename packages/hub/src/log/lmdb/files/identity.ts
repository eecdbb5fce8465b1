import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
import { dataName } from './store.ts'
import { socketName } from './writer-lock.ts'

/**
 * Watches that the folder still holds the files that were opened. A process can write to a removed file for as long as the file
 * is open: the hub would answer publishes with `disk`, and the events would be gone with the process. If the socket is removed,
 * a second writer could start.
 *
 * @returns a check that gives the fault, or undefined while there is none. A fault stays until the next start. Each check asks
 *   the system for two files.
 */
export function watchIdentity(folder: string): () => RejoinError | undefined {
  // On Windows nobody can remove an open file, and the lock is not a file.
  if (process.platform === 'win32') return () => undefined
  const files = [dataName, socketName].map((name) => ({ name, path: join(folder, name), id: idOf(join(folder, name)) }))
  let fault: RejoinError | undefined
  return () => {
    const gone = fault ? undefined : files.find(({ path, id }) => idOf(path) !== id)
    if (gone) fault = removed(gone.name, folder)
    return fault
  }
}

/** Undefined when there is no such file. */
function idOf(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  return stat && `${stat.dev} ${stat.ino}`
}

function removed(name: string, folder: string): RejoinError {
  return new RejoinError(
    `The file ${name} in ${folder} was removed or replaced while the log was open. Nothing more can be stored. ` +
      'Put the folder back from a copy, or leave it as it is, and start again; readers that lose something are told.',
    { code: 'log-unavailable', retryable: true },
  )
}
