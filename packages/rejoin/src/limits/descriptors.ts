import { readFileSync } from 'node:fs'

/**
 * How many connections may be open, so that some descriptors are left for the log, the admin port and the files that are
 * read meanwhile; undefined where the system does not tell how many there are. Without the rest, whoever opens connections
 * and does nothing with them keeps the log from working.
 */
export function connectionRoom(limitsFile = '/proc/self/limits'): number | undefined {
  const most = Number(/^Max open files +(\d+)/m.exec(read(limitsFile))?.[1])
  return most > 0 ? most - Math.min(reserved, Math.ceil(most / 2)) : undefined
}

/**
 * How many of the connections readers may have. A reader stays for hours, and without the rest nobody could publish to those
 * who are here, nor ask whether the hub is well.
 */
export function readerRoom(connections: number): number {
  return connections - Math.min(reservedForOthers, Math.ceil(connections / 8))
}

// The program has some thirty open by itself; the rest is for admins and for what is read and written now and then.
const reserved = 128
// A publish over a connection of its own takes it for some milliseconds, so this is for many thousand a second.
const reservedForOthers = 256

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not Linux, or a system without /proc: there is no limit that we could know.
    return ''
  }
}
