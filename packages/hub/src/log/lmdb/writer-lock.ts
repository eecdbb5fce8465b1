import { createHash } from 'node:crypto'
import { lstatSync, unlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join, relative } from 'node:path'
import { RejoinError } from '@rejoin/protocol'

/**
 * Sees to it that one process at a time writes to a folder: it listens on a socket in there. A process that dies, however
 * it dies, listens no more; a file with its number would go on claiming the folder for whoever gets that number next.
 *
 * @param exclusively - keeps other starters out for a moment, so that of two that find a dead socket, the slower one does
 *   not remove the socket of the faster
 */
export async function takeWriterLock(folder: string, exclusively: Exclusively): Promise<WriterLock> {
  const address = await addressIn(folder)
  try {
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const server = await listenOn(address.path)
      if (server) return lockOf(server, address)
      const dead = identityOf(address.path)
      if (await answers(address.path)) break
      exclusively(() => {
        if (dead !== undefined && identityOf(address.path) === dead) unlinkSync(address.path)
      })
    }
  } catch (error) {
    await address.release()
    throw error
  }
  await address.release()
  throw new RejoinError(
    `Another process writes to the log in ${folder}. End it, or choose another folder; a log has one writer.`,
    { code: 'log-unavailable', retryable: true },
  )
}

export interface WriterLock {
  release(): Promise<void>
}

type Exclusively = (task: () => void) => void

// Each attempt after the first means that a starter died or gave way at that very moment.
const maxAttempts = 5

interface Address {
  readonly path: string
  release(): Promise<void>
}

/** A socket's path has room for 107 bytes (103 on macOS), so it must not contain the folder's. */
async function addressIn(folder: string): Promise<Address> {
  const release = async () => undefined
  if (process.platform === 'win32') {
    return { path: `\\\\.\\pipe\\rejoin-${createHash('sha256').update(folder.toLowerCase()).digest('hex')}`, release }
  }
  if (process.platform === 'linux') {
    const handle = await open(folder, 'r')
    return { path: `/proc/self/fd/${handle.fd}/${socketName}`, release: () => handle.close() }
  }
  const [path = ''] = [join(folder, socketName), relative('', join(folder, socketName))].sort(
    (a, b) => a.length - b.length,
  )
  if (Buffer.byteLength(path) <= 103) return { path, release }
  throw new RejoinError(`The path ${folder} is too long for a socket. Choose a folder with a shorter one.`, {
    code: 'invalid-option',
  })
}

/** The file in the folder of a log that its writer listens on. */
export const socketName = 'writer.sock'

/** Undefined when there is a socket already, be it dead or alive. */
function listenOn(path: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('listening', () => resolve(server.unref()))
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(path)
  })
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    // ECONNREFUSED: nobody listens. ENOENT: it has just been given up.
    socket.once('error', () => resolve(false))
  })
}

/** Tells one socket file from the next of the same name, which may get the same inode. */
function identityOf(path: string): string | undefined {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.ino} ${stat.ctimeNs}`
}

function lockOf(server: Server, address: Address): WriterLock {
  return {
    async release() {
      // Closing also removes the socket's file, for which the path has to be good until then.
      await new Promise((resolve) => server.close(resolve))
      await address.release()
    },
  }
}
