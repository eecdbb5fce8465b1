import type { Hub } from '@rejoin/hub'

/** The channels that were published to or read from since the start, the latest last, and no more of them than fit. */
export interface ChannelsSeen {
  /** By name. `after` is the last name of the page before. */
  list(options: { prefix: string; after: string; limit: number }): string[]
  latest(count: number): string[]
}

// Some 100 bytes each. More would be a copy of the log's own index.
const most = 10_000

export function watchChannels(hub: Pick<Hub, 'on'>): ChannelsSeen {
  // In the order in which they were last seen.
  const names = new Set<string>()

  function see(name: string): void {
    names.delete(name)
    names.add(name)
    if (names.size > most) {
      const [oldest] = names
      names.delete(oldest as string)
    }
  }
  hub.on('publish', ({ channel }) => see(channel))
  hub.on('connect', ({ channels }) => {
    for (const channel of channels) see(channel)
  })

  return {
    list({ prefix, after, limit }) {
      const meant = [...names].filter((name) => name.startsWith(prefix) && name > after)
      return meant.sort().slice(0, limit)
    },
    latest: (count) => [...names].slice(-count),
  }
}
