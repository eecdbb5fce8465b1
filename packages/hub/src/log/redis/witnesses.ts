import type { Connection } from './client.ts'

/**
 * The other hubs that have this log open. Redis tells of their connections, by name. What hubs write into the log's own keys would
 * not do: it is copied with the log, and put back with it.
 */
export interface Witnesses {
  /** Whether another hub has followed the log until now: it would have noticed that an older copy was put back. */
  areThere(connection: Connection, process: string): Promise<boolean>
  /** Makes this hub known to those that start later. Only for a hub that has looked at the log, and opened the branch it needed. */
  join(connection: Connection, process: string): Promise<void>
}

/**
 * A server that does not let this user ask for or set names has no witnesses: then a hub that starts opens a branch, which is
 * always right.
 *
 * @param prefix - of the log's keys
 * @param writer - names this hub among those on the log
 */
export function createWitnesses(prefix: string, writer: string): Witnesses {
  // A name may have no spaces, and ASCII only.
  const family = `rejoin:${encodeURIComponent(prefix)}:`
  const own = family + writer

  return {
    async areThere(connection, process) {
      const ask = async (...args: string[]) => String(await connection.sendTo(process, ['CLIENT', ...args]))
      try {
        const db = fieldOf(await ask('INFO'), 'db')
        const all = (await ask('LIST', 'TYPE', 'normal')).split('\n')
        return all.some((line) => {
          const name = fieldOf(line, 'name')
          const isOther = name.startsWith(family) && name !== own && fieldOf(line, 'db') === db
          return isOther && Number(fieldOf(line, 'idle')) <= mostIdleSeconds
        })
      } catch {
        return false
      }
    },
    async join(connection, process) {
      await connection.sendTo(process, ['CLIENT', 'SETNAME', own]).catch(() => undefined)
    },
  }
}

// A tail asks every two seconds. Redis keeps the connection of a machine that has vanished for minutes.
const mostIdleSeconds = 4

function fieldOf(line: string, name: string): string {
  return new RegExp(`(?:^| )${name}=(\\S*)`).exec(line)?.[1] ?? ''
}
