/** What a storm does. */
export interface StormPlan {
  readonly readers: number
  readonly channels: number
  /** How many of a hundred readers read all channels, by a pattern. */
  readonly patternPercent: number
  /** How many of a hundred readers take at most 64 KB a second. */
  readonly slowPercent: number
  /** Events a second, over all channels. */
  readonly rate: number
  /** Characters of data in each event. */
  readonly size: number
  /** For how long events are published. */
  readonly forMs: number
  /** How many of a hundred readers are cut each time. */
  readonly cutPercent: number
  readonly cutEveryMs: number
  /** How long a cut reader stays away; undefined: as long as the hub told it. */
  readonly awayMs?: number
  /**
   * For how long readers may get nothing new, when they connect and after the last publish, before they are given up; and a sixth of
   * the time that they have in all.
   */
  readonly patienceMs: number
  /** Begins the name of every channel. No other storm has it. */
  readonly prefix: string
}

/** What one reader reads. Event `n` goes to channel `n % channels`, so a reader of one channel is owed every such event. */
export interface Share {
  /** A channel or a pattern. */
  readonly selector: string
  readonly isSlow: boolean
  /** How many of the first `events` events of the storm are this reader's. */
  countOf(events: number): number
  /** Which of this reader's events it is, or undefined when it is not meant for this reader. */
  indexOf(event: number): number | undefined
  /** The number of this reader's event in the storm. */
  numberOf(index: number): number
}

export function shareOf(plan: StormPlan, reader: number): Share {
  const { channels, prefix } = plan
  const readsAll = isChosen(reader, plan.patternPercent)
  const step = readsAll ? 1 : channels
  const first = readsAll ? 0 : reader % channels
  return {
    selector: readsAll ? `${prefix}/*` : channelOf(plan, first),
    // From the other end, so that slow readers are readers of patterns and of channels alike.
    isSlow: isChosen(plan.readers - 1 - reader, plan.slowPercent),
    countOf: (events) => Math.max(0, Math.ceil((events - first) / step)),
    indexOf: (event) => ((event - first) % step === 0 ? (event - first) / step : undefined),
    numberOf: (index) => first + index * step,
  }
}

export function channelOf({ prefix, channels }: StormPlan, event: number): string {
  return `${prefix}/${event % channels}`
}

/** So many of a hundred. */
export function partOf(count: number, percent: number): number {
  return Math.floor((count * percent) / 100)
}

/** Spread evenly: of any ten readers in a row, 20 percent are two. */
function isChosen(reader: number, percent: number): boolean {
  return partOf(reader + 1, percent) > partOf(reader, percent)
}
