import type { SnapshotHook } from '@rejoin/hub'

/** The state that the events of a playground change: the latest number of each tab. */
export interface LatestNumbers {
  set(tab: string, number: number): void
  /** Gives the latest number to a reader of a tab's channel after a gap. Other channels go to the other hook. */
  snapshot(other?: SnapshotHook): SnapshotHook
}

export function createLatestNumbers(): LatestNumbers {
  const latest = new Map<string, number>()
  return {
    set(tab, number) {
      // Deleted and set again, so that the first tab in the map is the one that was quiet for longest.
      latest.delete(tab)
      latest.set(tab, number)
      const [oldest] = latest.keys()
      if (latest.size > maxTabs && oldest !== undefined) latest.delete(oldest)
    },
    snapshot: (other) => (channels, call) => {
      const [channel = ''] = channels
      const isOurs = channels.length === 1 && channel.startsWith(prefix)
      const number = isOurs ? latest.get(channel.slice(prefix.length)) : undefined
      return number === undefined ? other?.(channels, call) : { latest: number }
    },
  }
}

const maxTabs = 1000
const prefix = 'playground/'

/** The channel that a tab publishes to and reads. */
export function channelOf(tab: string): string {
  return `${prefix}${tab}`
}
