import { isAfter, origin, prefixOf } from '@rejoin/protocol'
import type { LogEvent } from '../../contract.ts'
import { eventBytes } from '../../event-bytes.ts'
import { addLoss, type Lost, lossAfter, type PageRange, type SelectorRead } from '../../selector-read.ts'
import type { Store } from '../files/store.ts'
import { feedAfter } from '../format/feed.ts'
import { afterChannels, channelKey, channelOf } from '../format/keys.ts'
import { type ChannelState, openChannelState } from '../format/state.ts'
import type { PageSource } from './channel.ts'
import { newsOf } from './commit-news.ts'

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

// Entries of the feed, and names in them, that one page looks at. A page must not take longer than some milliseconds, also when
// all new events are of other channels. The names count as well, because one commit may have touched thousands of channels.
const lookedAtATime = 1024
const namesAtATime = 4096
// Channels whose state one page looks up. Each costs two searches in the file.
const checkedAtATime = 512

/**
 * The events of all channels of a pattern, found by the feed. Undefined when the feed does not cover the range: the caller then
 * has to look at every channel.
 */
export function readByFeed(
  source: PageSource,
  pattern: string,
  { after, through, limit }: PageRange,
): SelectorRead | undefined {
  const prefixes = [prefixOf(pattern)]
  const events: LogEvent[] = []
  const checked = new Set<string>()
  // Any forgotten channel may have been one of the pattern's.
  if (isAfter(source.log.forgottenThrough, after)) return lossByFeed(source, pattern, { after, through })
  let bytes = 0
  let looked = 0
  let names = 0
  for (const entry of feedAfter(source.store, source.log, after)) {
    if (entry === 'broken') return undefined
    if (isAfter(entry.first, through)) break
    const brought = newsOf(source, entry, prefixes)
    if (!brought) return undefined
    for (const channel of brought.trimmed) {
      const lost = lossAfter(source.stateOf(channel), after)
      if (lost) return addLoss(lost, lossByFeed(source, pattern, { after, through }))
    }
    for (const news of brought.news) {
      if (!isAfter(news.position, after)) continue
      if (isAfter(news.position, through)) return { events, through }
      if (!checked.has(news.channel)) {
        checked.add(news.channel)
        const lost = lossAfter(source.stateOf(news.channel), after)
        if (lost) return addLoss(lost, lossByFeed(source, pattern, { after, through }))
      }
      if (news.isMark) continue
      const event = news.event()
      // The event is damaged, because it is not trimmed. A look at the channel itself tells which events are left.
      if (!event) return undefined
      events.push(event)
      bytes += eventBytes(event)
      const isFull = events.length >= limit.events || bytes >= limit.bytes || checked.size >= checkedAtATime
      if (isFull) return { events, through: event.position }
    }
    looked += 1
    names += entry.channels.length
    if (looked === lookedAtATime || names >= namesAtATime) {
      return { events, through: isAfter(entry.last, through) ? through : entry.last }
    }
  }
  return { events, through }
}

/** The loss of the channels of a pattern, as far as the feed leads to these channels within the time of one page. */
export function lossByFeed(
  source: PageSource,
  pattern: string,
  { after, through }: Pick<PageRange, 'after' | 'through'>,
): Lost | undefined {
  const prefix = prefixOf(pattern)
  const { forgottenThrough } = source.log
  const checked = new Set<string>()
  let lost: Lost | undefined = lossAfter({ trimmedThrough: forgottenThrough, invalidatedThrough: origin }, after)
  let looked = 0
  let names = 0
  for (const entry of feedAfter(source.store, source.log, after)) {
    if (entry === 'broken' || isAfter(entry.first, through)) return lost
    for (const { name } of entry.channels) {
      if (!name.startsWith(prefix) || checked.has(name) || checked.size >= checkedAtATime) continue
      checked.add(name)
      lost = addLoss(lost, lossAfter(source.stateOf(name), after))
    }
    looked += 1
    names += entry.channels.length
    if (looked === lookedAtATime || names >= namesAtATime || checked.size >= checkedAtATime) return lost
  }
  return lost
}
