import type { Connection } from './client.ts'

/**
 * The other hubs that have this log open. Redis lists their connections by name. A note in the log's own keys would not do: it
 * would be copied with the log, and put back with it.
 */
export interface Witnesses {
  /** Whether another hub follows the log. That hub would have noticed if somebody had put an older copy back. */
  areThere(connection: Connection, process: string): Promise<boolean>
  /** Makes this hub known to later hubs. Only for a hub that has looked at the log, and has opened a branch if it had to. */
  join(connection: Connection, process: string): Promise<void>
}

/**
 * When the server does not let this user read or set the names of connections, there are no witnesses. A starting hub then
 * opens a branch, which is always safe.
 *
 * @param prefix - the prefix of the log's keys
 * @param writer - the name of this hub among the hubs of the log
 */
export function createWitnesses(prefix: string, writer: string): Witnesses {
  // The name of a connection is ASCII without spaces.
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

// A tail asks every two seconds, so a hub that is idle for longer is gone. Redis lists the connections of a dead machine for
// minutes.
const mostIdleSeconds = 4

function fieldOf(line: string, name: string): string {
  return new RegExp(`(?:^| )${name}=(\\S*)`).exec(line)?.[1] ?? ''
}
