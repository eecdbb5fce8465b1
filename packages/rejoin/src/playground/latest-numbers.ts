import type { SnapshotHook } from '@rejoin/hub'

/** The state that the events of a playground change: the latest number of each tab. */
export interface LatestNumbers {
  set(tab: string, number: number): void
  /** Gives a reader of a tab that has lost its position the state, and leaves other channels to the other hook. */
  snapshot(other?: SnapshotHook): SnapshotHook
}

export function createLatestNumbers(): LatestNumbers {
  const latest = new Map<string, number>()
  return {
    set(tab, number) {
      // Anew, so that the oldest in the map is the one that has been quiet for longest.
      latest.delete(tab)
      latest.set(tab, number)
      const [oldest] = latest.keys()
      if (latest.size > maxTabs && oldest !== undefined) latest.delete(oldest)
    },
    snapshot: (other) => (channels) => {
      const [channel = ''] = channels
      const isOurs = channels.length === 1 && channel.startsWith(prefix)
      const number = isOurs ? latest.get(channel.slice(prefix.length)) : undefined
      return number === undefined ? other?.(channels) : { latest: number }
    },
  }
}

const maxTabs = 1000
const prefix = 'playground/'

/** The channel that a tab publishes to and reads. */
export function channelOf(tab: string): string {
  return `${prefix}${tab}`
}
