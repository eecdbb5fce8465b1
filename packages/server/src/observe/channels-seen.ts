import type { Hub } from '@rejoin/hub'

/** The channels that were published to or read from since the start, as many of the latest as fit. */
export interface ChannelsSeen {
  /** By name. `after` is the last name of the page before. */
  list(options: { prefix: string; after: string; limit: number }): string[]
  /** Of these, some that were seen lately. */
  sample(count: number): string[]
}

// Some 100 bytes each, twice as many in all. More would be a copy of the log's own index.
const generationSize = 10_000

export function watchChannels(hub: Pick<Hub, 'on'>): ChannelsSeen {
  // Two generations, the older thrown away whole. One set from which the oldest is deleted each time would cost 10 µs per
  // publish: its first element is searched for behind all that were deleted before.
  let latest = new Set<string>()
  let before = new Set<string>()

  function see(name: string): void {
    latest.add(name)
    if (latest.size < generationSize) return
    before = latest
    latest = new Set()
  }
  hub.on('publish', ({ channel }) => see(channel))
  hub.on('connect', ({ channels }) => {
    // Not patterns: they are no channels, and what they hold is dear to ask for.
    for (const channel of channels) if (!channel.includes('*')) see(channel)
  })

  return {
    list({ prefix, after, limit }) {
      const meant = [...new Set([...latest, ...before])].filter((name) => name.startsWith(prefix) && name > after)
      return meant.sort().slice(0, limit)
    },
    sample: (count) => [...new Set([...[...latest].slice(-count), ...before])].slice(0, count),
  }
}
