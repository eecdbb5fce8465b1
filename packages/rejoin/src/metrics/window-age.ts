import type { ChannelWindow, Hub } from '@rejoin/hub'

/**
 * The shortest absence that is still bridged for certain, in milliseconds, of some channels that readers returned to: the age
 * of the oldest event where the window is full, and what the window promises where it is not. Compared with how long readers
 * are away, it shows a window that gets small before anybody is told of a gap. NaN when the log cannot be read.
 */
export function watchWindowAge(hub: Pick<Hub, 'on' | 'window' | 'log'>, now: () => number = Date.now) {
  // Those since the last scrape, and those before it, in case there are none.
  let latest = new Set<string>()
  let before = new Set<string>()

  function returned({ channels }: { readonly channels: readonly string[] }): void {
    // Patterns are left out: what they hold is dear to ask for, and says nothing of one channel.
    for (const channel of channels) if (latest.size < sampleSize && !channel.includes('*')) latest.add(channel)
  }
  hub.on('replay', returned)
  hub.on('gap', returned)

  return async (): Promise<number> => {
    const names = [...new Set([...latest, ...before])].slice(0, sampleSize)
    if (latest.size > 0) before = latest
    latest = new Set()
    try {
      const windows = await Promise.all(names.map((name) => hub.window(name)))
      return names.length === 0 ? hub.log.window.maxAgeMs : Math.min(...windows.map((window) => bridged(window, now())))
    } catch {
      // Whoever asks for readiness learns of it; a metric can only be missing.
      return Number.NaN
    }
  }
}

// Each is a question to the log, with every scrape.
const sampleSize = 100
// A window of bytes is never filled to the last one.
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
