import type { ChannelWindow, Hub } from '@rejoin/hub'
import { ulid, uuidv7 } from '@rejoin/protocol'
import type { ChannelsSeen } from './channels-seen.ts'

/**
 * The shortest absence, of the channels seen last, that is still bridged for certain, in milliseconds: the age of the oldest
 * event where the window is full, and what the window promises where it is not. Compared with how long readers are away, it
 * shows a window that gets small before anybody is told of a gap. NaN when the log cannot be read.
 */
export async function windowAge(
  hub: Pick<Hub, 'window' | 'log'>,
  channels: ChannelsSeen,
  now: () => number = Date.now,
): Promise<number> {
  const { maxAgeMs = Number.POSITIVE_INFINITY } = hub.log.window
  try {
    const windows = await Promise.all(channels.sample(sampleSize).map((channel) => hub.window(channel)))
    const ages = windows.filter((window) => isFull(window, hub.log.window)).map((window) => ageOf(window, now()))
    return Math.min(maxAgeMs, ...ages)
  } catch {
    // Whoever asks for readiness learns of it; a metric can only be missing.
    return Number.NaN
  }
}

// Each is a question to the log, with every scrape.
const sampleSize = 100
// A window of bytes is never filled to the last one.
const nearlyFull = 0.9

function isFull({ events, bytes }: ChannelWindow, bounds: Hub['log']['window']): boolean {
  return events >= bounds.maxEvents || bytes >= nearlyFull * bounds.maxBytes
}

/** By the time that the oldest id tells, which those of the other codecs do not, or not without their settings. */
function ageOf({ oldest }: ChannelWindow, now: number): number {
  const place = oldest === null ? undefined : (ulid().decode(oldest) ?? uuidv7().decode(oldest))
  return place ? Math.max(0, now - place.position.ms) : Number.POSITIVE_INFINITY
}
