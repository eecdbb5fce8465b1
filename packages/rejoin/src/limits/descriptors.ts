import { readFileSync } from 'node:fs'

/**
 * How many connections may be open; undefined when the system does not tell its limit. Some file descriptors stay reserved for
 * the log, the admin port and files. Otherwise a client that opens idle connections could stop the log from working.
 */
export function connectionRoom(limitsFile = '/proc/self/limits'): number | undefined {
  const most = Number(/^Max open files +(\d+)/m.exec(read(limitsFile))?.[1])
  return most > 0 ? most - Math.min(reserved, Math.ceil(most / 2)) : undefined
}

/**
 * How many of the connections readers may use. Readers stay for hours, so some connections stay reserved for publishers and
 * health checks.
 */
export function readerRoom(connections: number): number {
  return connections - Math.min(reservedForOthers, Math.ceil(connections / 8))
}

/** With more connections than this, idle ones are closed: half of what is reserved for others is left for the next moment. */
export function evictionRoom(connections: number): number {
  return connections - Math.floor((connections - readerRoom(connections)) / 2)
}

// The program itself has about thirty descriptors open, and asks snapshot webhooks over 32 at most. The rest is for admins and for
// files that are open for a moment.
const reserved = 128
// A publish on a new connection uses it for a few milliseconds, so 256 connections carry many thousand publishes a second.
const reservedForOthers = 256

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not Linux, or a system without /proc: the limit is unknown.
    return ''
  }
}
