import { hostname } from 'node:os'
import type { Hub } from '@rejoin/hub'
import type { Figures } from './figures.ts'

/** The facts that a hub tells the other hubs on its log. */
export interface NodeNote {
  /** The names of the machine and the process. */
  readonly name: string
  readonly version: string
  readonly startedAt: number
  readonly connections: number
  readonly deliveriesPerSecond: number
  readonly rssBytes: number
}

export const nodeName = `${hostname()} ${process.pid}`

/** The hubs that share a log, by their notes of the last 15 seconds. */
export interface Nodes {
  /** Empty while the log does not answer; null for a log that only this hub can use. */
  readonly known: readonly NodeNote[] | null
  /** Takes the figures of every second, and sends a note to the other hubs every five seconds. */
  tell(figures: Figures): void
}

export function createNodes({ log }: Pick<Hub, 'log'>): Nodes {
  if (!log.meet) return { known: null, tell: () => undefined }
  let known: readonly NodeNote[] = []
  let told: Figures | undefined
  return {
    get known() {
      return known
    },
    tell(figures) {
      // The absolute difference, because the clock may have been set back.
      if (told && Math.abs(figures.at - told.at) < tellEveryMs) return
      const note = JSON.stringify(noteOf(figures, told))
      told = figures
      log.meet?.(note, forMs).then(
        (notes) => {
          known = notes.flatMap(readNote).sort((one, other) => (one.name < other.name ? -1 : 1))
        },
        () => {
          // Readiness and the operator's lines already tell that the log is away.
          known = []
        },
      )
    },
  }
}

const tellEveryMs = 5000
// A hub that misses two notes may be busy; a hub that misses three is gone.
const forMs = 3 * tellEveryMs

function noteOf(now: Figures, before: Figures | undefined): NodeNote {
  const { node: name, version, startedAt, readers, totals, process } = now
  const seconds = before ? (now.at - before.at) / 1000 : 0
  const delivered = totals.deliveries - (before?.totals.deliveries ?? 0)
  return {
    name,
    version,
    startedAt,
    connections: readers.live + readers.replaying,
    deliveriesPerSecond: seconds > 0 ? Math.round(delivered / seconds) : 0,
    rssBytes: process.rssBytes,
  }
}

/** The note as a list of one; empty for a note that another version wrote in another form, which must cause no error here. */
function readNote(text: string): NodeNote[] {
  let note: Readonly<Record<string, unknown>>
  try {
    note = Object(JSON.parse(text))
  } catch {
    return []
  }
  const numbers = [note.startedAt, note.connections, note.deliveriesPerSecond, note.rssBytes]
  const isOurs = typeof note.name === 'string' && typeof note.version === 'string' && numbers.every(Number.isFinite)
  return isOurs ? [note as unknown as NodeNote] : []
}
