import { isAfter, type Position, prefixOf } from '@rejoin/protocol'
import type { SliceQueue } from '../../slice-queue.ts'
import type { NameRead, PageRange } from '../name-read.ts'
import { createWidePage } from '../wide-page.ts'
import { channelKey } from './keys.ts'
import { readOne } from './page.ts'
import { channelsUnder } from './patterns.ts'
import type { PageSource } from './read.ts'

/**
 * What follows a position in all channels of a pattern, where the feed does not reach back: by a look at every one of them, some
 * at a time. What is trimmed meanwhile is found by the read of its channel, or makes `forgottenThrough` of afterwards a gap.
 */
export async function readEvery(source: WideSource, pattern: string, range: PageRange): Promise<NameRead> {
  const { slices, page: sourceOf } = source
  const page = createWidePage(range)
  const prefix = prefixOf(pattern)
  let from: Buffer | undefined
  do {
    const start = from
    from = await slices.take(() =>
      source.reading(() => {
        const now = sourceOf()
        const { changed, next } = changedUnder(now, prefix, range.after, start)
        let left = eventsAtATime
        for (const [index, channel] of changed.entries()) {
          const limit = { events: Math.min(left, range.limit.events), bytes: bytesAtATime }
          const read = readOne(now, channel, { ...range, through: page.through, limit })
          const isCut = 'events' in read && isAfter(page.through, read.through)
          // Cut off where it is, it would end the page there. The next slice is its own.
          if (isCut && index > 0) return channelKey(channel)
          page.add([read])
          if ('events' in read) left -= read.events.length
          if (left <= 0 || isCut) return index + 1 < changed.length ? channelKey(changed[index + 1] as string) : next
        }
        return next
      }),
    )
  } while (from)
  const { forgottenThrough } = await source.reading(() => sourceOf().log)
  if (isAfter(forgottenThrough, range.after)) page.add([{ wholeAfter: forgottenThrough, forced: false }])
  return page.result()
}

export interface WideSource {
  readonly slices: SliceQueue
  /** What a page is read from, as it is now. Throws once the log is closed. */
  page(): PageSource
  reading<Result>(task: () => Result): Promise<Result>
}

// A look takes a microsecond or two, and a read some ten.
const lookedAtATime = 512
const readAtATime = 128
const eventsAtATime = 4096
const bytesAtATime = 512 * 1024

/** The next channels with something after a position, and where to go on. One whose entry is damaged may have changed. */
function changedUnder(
  { store }: PageSource,
  prefix: string,
  after: Position,
  from: Buffer | undefined,
): { changed: string[]; next: Buffer | undefined } {
  const changed: string[] = []
  let looked = 0
  for (const { key, channel, state } of channelsUnder(store, prefix, from)) {
    if (looked === lookedAtATime || changed.length === readAtATime) return { changed, next: key }
    looked += 1
    if (!state || isAfter(state.newest, after)) changed.push(channel)
  }
  return { changed, next: undefined }
}
