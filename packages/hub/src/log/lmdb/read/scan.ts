import { isAfter, type Position, prefixOf } from '@rejoin/protocol'
import type { SliceQueue } from '../../../slice-queue.ts'
import type { PageRange, SelectorRead } from '../../selector-read.ts'
import { createWidePage } from '../../wide-page.ts'
import type { Store } from '../files/store.ts'
import { afterChannels, channelKey, channelOf } from '../format/keys.ts'
import { type ChannelState, openChannelState } from '../format/state.ts'
import { type PageSource, readOne } from './channel.ts'

/**
 * The events of all channels of a pattern, for a range to which the feed does not reach back. It looks at every channel, some
 * at a time. When a channel is trimmed meanwhile, the read of that channel finds the gap; when it is forgotten,
 * `forgottenThrough` shows the gap in the end.
 */
export async function readEvery(source: WideSource, pattern: string, range: PageRange): Promise<SelectorRead> {
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
          // To add a read that is cut short would end the page there. The next slice reads this channel first.
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
  /** The source of a page as it is now. Throws once the log is closed. */
  page(): PageSource
  reading<Result>(task: () => Result): Promise<Result>
}

// To look at a channel takes a microsecond or two, and to read it some ten.
const lookedAtATime = 512
const readAtATime = 128
const eventsAtATime = 4096
const bytesAtATime = 512 * 1024

/** The next channels that may have something after a position, and the key to go on from. A damaged entry counts as changed. */
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

/** Every channel whose name starts with `prefix`, with its stored state, which is undefined when it is damaged. */
export function* channelsUnder(
  store: Store,
  prefix: string,
  from = channelKey(prefix),
): Generator<{ key: Buffer; channel: string; state: ChannelState | undefined }> {
  for (const { key, value } of store.range(from, afterChannels)) {
    const channel = channelOf(key)
    if (!channel.startsWith(prefix)) return
    yield { key, channel, state: openChannelState(key, value) }
  }
}
