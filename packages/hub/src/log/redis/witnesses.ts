import { createHash } from 'node:crypto'
import { createEpoch } from '@rejoin/protocol'
import type { Connection } from './client.ts'

/**
 * Proofs that the log is the one that hubs followed last, and no older copy that was put back. None of them is a key of the log:
 * it would be copied with the log, and put back with it.
 *
 * A hub that runs is found by the name of its connections. A hub that stops leaves two things: a new name, in the log itself, and
 * a script without effect, whose text has that name and the newest position. Redis keeps scripts for as long as its process runs,
 * and keeps them apart from keys. The first hub that comes to the log loads another script with the name, and from then on the
 * name proves nothing: the log may have gone on, and a copy from before may have been put back.
 */
export interface Witnesses {
  /** Whether another hub follows the log. That hub would have noticed if an older copy had been put back. */
  areThere(connection: Connection, process: string): Promise<boolean>
  /** Whether the log is as the last hub left it, and no hub has come to it since. */
  isAsLeft(connection: Connection, process: string, log: LeftLog): Promise<boolean>
  /**
   * Makes this hub known to later hubs. Only for a hub that has looked at the log, and has opened a branch if it had to, and
   * before it writes to the log.
   */
  join(connection: Connection, process: string, readName: () => Promise<string>): Promise<void>
  /** Leaves the proof behind, unless another hub follows the log. Only for a hub that writes nothing more. */
  leave(connection: Connection, process: string, writeName: (name: string) => Promise<LeftLog>): Promise<void>
}

/** A log that was left. */
export interface LeftLog {
  /** The name that the last hub gave to the log when it stopped; '' when it gave none. */
  readonly left: string
  readonly epoch: string
  readonly last: string
}

/**
 * When the server does not let this user read or set the names of connections, or load scripts, nothing is proved. A starting
 * hub then opens a branch, which is always safe. All hubs of a log need the same rights on its server.
 *
 * @param prefix - the prefix of the log's keys
 * @param writer - the name of this hub among the hubs of the log
 */
export function createWitnesses(prefix: string, writer: string): Witnesses {
  // The name of a connection is ASCII without spaces.
  const family = `rejoin:${encodeURIComponent(prefix)}:`
  const own = family + writer

  /** The database of the connection, and the lines of `CLIENT LIST` for hubs of the same log. */
  async function othersOn(connection: Connection, process: string): Promise<string[]> {
    const db = await databaseOf(connection, process)
    const all = String(await connection.sendTo(process, ['CLIENT', 'LIST', 'TYPE', 'normal'])).split('\n')
    return all.filter((line) => {
      const name = fieldOf(line, 'name')
      return name.startsWith(family) && name !== own && fieldOf(line, 'db') === db
    })
  }

  async function databaseOf(connection: Connection, process: string): Promise<string> {
    return fieldOf(String(await connection.sendTo(process, ['CLIENT', 'INFO'])), 'db')
  }

  // Two logs with one name differ by their database. No prefix contains a space.
  const leftAs = (db: string, { left, epoch, last }: LeftLog) => `-- ${prefix} ${db} left ${left} ${epoch} ${last}`
  const takenUp = (db: string, left: string) => `-- ${prefix} ${db} taken up ${left}`

  return {
    async areThere(connection, process) {
      try {
        const others = await othersOn(connection, process)
        return others.some((line) => Number(fieldOf(line, 'idle')) <= mostIdleSeconds)
      } catch {
        return false
      }
    },
    async isAsLeft(connection, process, log) {
      if (log.left === '') return false
      try {
        const db = await databaseOf(connection, process)
        const digests = [leftAs(db, log), takenUp(db, log.left)].map(digestOf)
        const known = (await connection.sendTo(process, ['SCRIPT', 'EXISTS', ...digests])) as number[]
        return known[0] === 1 && known[1] === 0
      } catch {
        return false
      }
    },
    async join(connection, process, readName) {
      await connection.sendTo(process, ['CLIENT', 'SETNAME', own]).catch(() => undefined)
      // In this order: a hub that leaves looks for names after it has written its own.
      const left = await readName()
      if (left === '') return
      const db = await databaseOf(connection, process).catch(rejectedOnly)
      const text = takenUp(db ?? '', left)
      await connection.sendTo(process, ['SCRIPT', 'LOAD', text]).catch(rejectedOnly)
    },
    async leave(connection, process, writeName) {
      // From here on it vouches for nothing, so that two hubs that leave at once do not wait for each other.
      await connection.sendTo(process, ['CLIENT', 'SETNAME', ''])
      const log = await writeName(createEpoch(Math.random) + createEpoch(Math.random))
      if ((await othersOn(connection, process)).length > 0) return
      const db = await databaseOf(connection, process)
      await connection.sendTo(process, ['SCRIPT', 'LOAD', leftAs(db, log)])
    },
  }
}

// A tail asks every two seconds, so a hub that is idle for longer is gone. Redis lists the connections of a dead machine for
// minutes.
const mostIdleSeconds = 4

/** No hub may run the command, and there is no proof to end. Any other failure is one of the connection. */
function rejectedOnly(error: unknown): undefined {
  if (!/^(?:NOPERM|ERR unknown)/.test(String((error as Error)?.message))) throw error
  return undefined
}

function digestOf(script: string): string {
  return createHash('sha1').update(script).digest('hex')
}

function fieldOf(line: string, name: string): string {
  return new RegExp(`(?:^| )${name}=(\\S*)`).exec(line)?.[1] ?? ''
}
