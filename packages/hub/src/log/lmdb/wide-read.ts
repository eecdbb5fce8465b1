import { isAfter, type Position, prefixOf } from '@rejoin/protocol'
import type { SliceQueue } from '../../slice-queue.ts'
import type { NameRead, PageRange } from '../name-read.ts'
import { createWidePage } from '../wide-page.ts'
import { type PageSource, readOne } from './page.ts'
import { channelsUnder } from './patterns.ts'

/**
 * What follows a place in all channels of a pattern, where the feed does not reach back: by a look at every one of them, some
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
        const share = { ...range.limit, events: page.share(changed.length) }
        page.add(changed.map((channel) => readOne(now, channel, { ...range, through: page.through, limit: share })))
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

/** The next channels with something after a place, and where to go on. One whose entry is damaged may have changed. */
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
