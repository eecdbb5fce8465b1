/** The plan of a storm. */
export interface StormPlan {
  readonly readers: number
  readonly channels: number
  /** Percentage of readers that read all channels, by a pattern. */
  readonly patternPercent: number
  /** Percentage of readers that take at most 64 KB a second. */
  readonly slowPercent: number
  /** Events per second, over all channels. */
  readonly rate: number
  /** Characters of data in each event. */
  readonly size: number
  /** For how long events are published. */
  readonly forMs: number
  /** Percentage of readers that are cut each time. */
  readonly cutPercent: number
  readonly cutEveryMs: number
  /** How long a cut reader stays away; left out, as long as the hub told it. */
  readonly awayMs?: number
  /**
   * How long the storm waits without any progress, while readers connect and after the last publish. With progress it waits six
   * times as long at most.
   */
  readonly patienceMs: number
  /** The beginning of every channel's name. No other storm has the same one. */
  readonly prefix: string
}

/** The events of one reader. Event `n` goes to channel `n % channels`, so it is known which events each reader is owed. */
export interface Share {
  /** A channel or a pattern. */
  readonly selector: string
  readonly isSlow: boolean
  /** How many of the first `events` events of the storm this reader is owed. */
  countOf(events: number): number
  /** The index of an event among this reader's events; undefined for an event that is not meant for this reader. */
  indexOf(event: number): number | undefined
  /** The number in the storm of this reader's event with this index. */
  numberOf(index: number): number
}

export function shareOf(plan: StormPlan, reader: number): Share {
  const { channels, prefix } = plan
  const readsAll = isChosen(reader, plan.patternPercent)
  const step = readsAll ? 1 : channels
  const first = readsAll ? 0 : reader % channels
  return {
    selector: readsAll ? `${prefix}/*` : channelOf(plan, first),
    // Counted from the other end, so that there are slow readers both of patterns and of channels.
    isSlow: isChosen(plan.readers - 1 - reader, plan.slowPercent),
    countOf: (events) => Math.max(0, Math.ceil((events - first) / step)),
    indexOf: (event) => ((event - first) % step === 0 ? (event - first) / step : undefined),
    numberOf: (index) => first + index * step,
  }
}

export function channelOf({ prefix, channels }: StormPlan, event: number): string {
  return `${prefix}/${event % channels}`
}

/** The given percentage of a count, rounded down. */
export function partOf(count: number, percent: number): number {
  return Math.floor((count * percent) / 100)
}

/** Chooses readers evenly: with 20 percent, two of any ten readers in a row. */
function isChosen(reader: number, percent: number): boolean {
  return partOf(reader + 1, percent) > partOf(reader, percent)
}
