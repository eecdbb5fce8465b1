import { createHash } from 'node:crypto'
import { lstatSync, unlinkSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join, relative } from 'node:path'
import { invalidOption } from '../../../invalid-option.ts'

/**
 * Lets one process at a time write to a folder. The writer listens on a socket in the folder. A process that dies, for whatever
 * reason, no longer listens. A file with its process id would go on claiming the folder for the next process with that id.
 *
 * @param exclusively - keeps other starting processes out for a moment. When two of them find a dead socket, the slower one must
 *   not remove the new socket of the faster.
 * @returns undefined when another process has the lock
 */
export async function takeWriterLock(folder: string, exclusively: Exclusively): Promise<WriterLock | undefined> {
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
  return undefined
}

/** Resolves when no process answers on the socket of a folder, or at the deadline, a time of `performance.now()`. */
export async function writerGone(folder: string, deadline: number): Promise<void> {
  const address = await addressIn(folder)
  try {
    while (performance.now() < deadline && (await answers(address.path))) {
      const leftMs = Math.max(0, deadline - performance.now())
      // Of the machine, not of the environment: it waits for another process, and it keeps this process alive, which may have
      // nothing else to do yet.
      await new Promise((resolve) => setTimeout(resolve, Math.min(askEveryMs, leftMs)))
    }
  } finally {
    await address.release()
  }
}

const askEveryMs = 100

export interface WriterLock {
  release(): Promise<void>
}

type Exclusively = (task: () => void) => void

// Each attempt after the first means that another starting process died or gave way at that very moment.
const maxAttempts = 5

interface Address {
  readonly path: string
  release(): Promise<void>
}

/** The path of a socket has room for 107 bytes (103 on macOS), so it must not contain the path of the folder. */
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
  throw invalidOption(`The path ${folder} is too long for a socket. Choose a folder with a shorter one.`)
}

/** The writer of a log listens on this file in the log's folder. */
export const socketName = 'writer.sock'

/** Undefined when there is a socket already, dead or alive. */
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
    // ECONNREFUSED: no process listens. ENOENT: its process has just removed the socket.
    socket.once('error', () => resolve(false))
  })
}

/** Differs for two socket files of the same name. The inode alone would not do: the next file may get the same one. */
function identityOf(path: string): string | undefined {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return stat && `${stat.ino} ${stat.ctimeNs}`
}

function lockOf(server: Server, address: Address): WriterLock {
  return {
    async release() {
      // To close the server also removes the socket's file, so the path has to be good until then.
      await new Promise((resolve) => server.close(resolve))
      await address.release()
    },
  }
}
