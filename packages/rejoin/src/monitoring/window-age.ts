import type { ChannelWindow, Hub, HubAdmin } from '@rejoin/hub'

/**
 * The shortest absence that the windows bridge for certain, in milliseconds, over a sample of channels that readers returned to.
 * For a full window it is the age of its oldest event; for any other window it is `maxAgeMs`. Compared with the absences of
 * readers, it shows a small window before readers are told of a gap. NaN when the log cannot be read.
 */
export function watchWindowAge(hub: WatchedHub, now: () => number = Date.now) {
  // The channels since the last scrape, and the channels before it, in case the first set is empty.
  let latest = new Set<string>()
  let before = new Set<string>()

  function returned({ channels }: { readonly channels: readonly string[] }): void {
    // Patterns are left out: their window is costly to read, and says nothing about a single channel.
    for (const channel of channels) if (latest.size < sampleSize && !channel.includes('*')) latest.add(channel)
  }
  hub.on('replay', returned)
  hub.on('gap', returned)

  return async (): Promise<number> => {
    const names = [...new Set([...latest, ...before])].slice(0, sampleSize)
    if (latest.size > 0) before = latest
    latest = new Set()
    try {
      const windows = await Promise.all(names.map((name) => hub.admin.window(name)))
      return names.length === 0 ? hub.log.window.maxAgeMs : Math.min(...windows.map((window) => bridged(window, now())))
    } catch {
      // Readiness reports that the log fails. A metric can only be missing.
      return Number.NaN
    }
  }
}

// Each channel costs one read of the log per scrape.
const sampleSize = 100
// A window that is bounded by bytes is never full to the last byte.
const nearlyFull = 0.9

function bridged(window: ChannelWindow, now: number): number {
  const { maxAgeMs } = window.limits
  return isFull(window) ? Math.min(maxAgeMs, ageOf(window, now)) : maxAgeMs
}

function isFull({ events, bytes, limits }: ChannelWindow): boolean {
  return events >= limits.maxEvents || bytes >= nearlyFull * limits.maxBytes
}

function ageOf({ oldestAt }: ChannelWindow, now: number): number {
  return oldestAt === null ? Number.POSITIVE_INFINITY : Math.max(0, now - oldestAt)
}

interface WatchedHub extends Pick<Hub, 'on' | 'log'> {
  readonly admin: Pick<HubAdmin, 'window'>
}
