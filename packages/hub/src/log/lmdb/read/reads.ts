import { comparePositions, isAfter, isPattern, isSame, latest, origin, type Position } from '@rejoin/protocol'
import type { Environment } from '../../../environment.ts'
import type { SliceQueue } from '../../../slice-queue.ts'
import { mergeBackPages, shareOfBackPage } from '../../back-pages.ts'
import type { BackPage, ChannelPage, LogEvent, Page, PageLimit, TailBatch, Window } from '../../contract.ts'
import { createFarReads } from '../../far-reads.ts'
import { mergePages } from '../../merged-page.ts'
import { type PageRange, pageOf, type SelectorRead } from '../../selector-read.ts'
import type { Windows } from '../../window.ts'
import { trimAtMost, trimChannel } from '../commit/trim.ts'
import type { Store } from '../files/store.ts'
import { afterChannels, channelKey, channelOf, stateKey } from '../format/keys.ts'
import { isMark, type Marks, nextMark } from '../format/marks.ts'
import { type ChannelState, type LogState, openChannelState, openLogState } from '../format/state.ts'
import { type ChannelEvents, type PageSource, readChannel, readChannelBack, readOne } from './channel.ts'
import { lossByFeed, readByFeed, readFeedBack } from './patterns.ts'
import { readRetained } from './retained.ts'
import { readEvery, type WideSource } from './scan.ts'
import { readChannels, readWindow, readWindowUnder, type WindowSource } from './windows.ts'

/** The ways to read an embedded log. Each read leaves out the events that have fallen out of their window by now. */
export interface LmdbReads {
  page(selectors: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page>
  /** Undefined when the feed does not reach back to `through`, or a record is damaged. */
  back(selectors: readonly string[], after: Position, through: Position, most: number): Promise<BackPage | undefined>
  windows(selectors: readonly string[]): Promise<readonly Window[]>
  channels(page: ChannelPage): Promise<readonly Window[]>
  retained(selectors: readonly string[]): Promise<readonly LogEvent[] | undefined>
  /** Reads the store in this same turn, so the caller runs it inside `store.reading`. */
  backlog(after: Position, through: Position): TailBatch
  /** Drops the pages that were kept for readers of patterns. */
  clear(): void
}

export interface LmdbReadsOptions {
  readonly store: Store
  readonly windows: Windows
  readonly marks: Marks
  readonly environment: Pick<Environment, 'after' | 'endOfTurn'>
  readonly slices: SliceQueue
  now(): number
  /** The log's state as it was last committed. */
  state(): LogState
  /** The newest position that the tails have been told of. No read goes past it: a reader could get the event twice. */
  announced(): Position
  /** Called when a read found a channel over its window or damaged, so that a commit stores what the read found. */
  requestSweep(channel: string): void
  /** Throws once the log is closed. */
  assertOpen(): void
}

export function createLmdbReads(options: LmdbReadsOptions): LmdbReads {
  const { store, windows, marks, environment, slices, now, state, announced, requestSweep, assertOpen } = options
  const source: WindowSource = {
    store,
    windows,
    marks,
    get forgottenThrough() {
      return forgottenThrough()
    },
    now,
    stateOf: (channel) => stateOf(channel, now()),
    assertOpen,
  }
  const wideSource: WideSource = {
    slices,
    page: () => {
      assertOpen()
      return pageSource(['*'])
    },
    reading: (task) => store.reading(task),
  }
  const far = createFarReads((pattern, range) => readEvery(wideSource, pattern, range), environment)
  /** Events that the reads of this turn may still leave out. */
  let trimsLeft = trimAtMost

  return {
    page,
    back,
    windows: (selectors) =>
      Promise.all(
        selectors.map((selector) =>
          isPattern(selector)
            ? readWindowUnder(source, selector, slices)
            : store.reading(() => readWindow(source, selector)),
        ),
      ),
    channels: (page) => readChannels(source, page, slices),
    retained: (selectors) => readRetained(store, selectors, slices),
    backlog: (after, through) => readBacklog(source, after, through),
    clear: far.clear,
  }

  async function page(
    selectors: readonly string[],
    after: Position,
    through: Position,
    limit: PageLimit,
  ): Promise<Page> {
    const newest = announced()
    const end = isAfter(through, newest) ? newest : through
    const mark = nextMark(marks, after, end)
    const range = { after, through: mark ?? end, limit }
    const farReads = new Map<string, SelectorRead>()
    for (;;) {
      const page = await store.reading(() => readPage(pageSource(selectors), selectors, range, farReads))
      if (!('tooFar' in page)) return beforeMark(page, selectors, range, mark)
      farReads.set(page.tooFar, await far.read(page.tooFar, range))
    }
  }

  /** A page that has come to a mark ends with its last event. Without an event it is the mark. */
  function beforeMark(
    page: Page,
    selectors: readonly string[],
    { after }: PageRange,
    mark: Position | undefined,
  ): Page {
    const { events, completeThrough, gap } = page
    // The events before a mark were trimmed, and the mark with them.
    if (gap?.reason === 'expired' && isMark(marks, gap.wholeAfter)) return { ...page, gap: { ...gap, reason: 'epoch' } }
    if (gap || !mark || !isSame(completeThrough, mark)) return page
    const last = events.at(-1)
    if (last) return { events, completeThrough: last.position }
    const found = { channels: selectors, reason: 'epoch', wholeAfter: mark, isMark: true } as const
    return { events, completeThrough: after, gap: found }
  }

  function back(
    selectors: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    const range = { after, through, most: shareOfBackPage(most, selectors.length) }
    return store.reading(() => {
      const source = pageSource(selectors)
      const patterns = selectors.filter(isPattern)
      const channels = selectors.filter((selector) => !isPattern(selector))
      const pages = channels.map((name) => readChannelBack(source, name, range))
      if (patterns.length > 0) pages.push(readFeedBack(source, patterns, range))
      return pages.every((page) => page !== undefined) ? mergeBackPages(pages) : undefined
    })
  }

  function pageSource(selectors: readonly string[]): PageSource {
    const at = now()
    const log = selectors.some(isPattern) ? { ...state(), forgottenThrough: forgottenThrough() } : state()
    return { store, marks, log, stateOf: (channel) => stateOf(channel, at) }
  }

  /** Asks the store as well: a commit that forgets a channel shows in the store some time before it is announced here. */
  function forgottenThrough(): Position {
    const sealed = store.get(stateKey)
    const stored = sealed && openLogState(stateKey, sealed)
    return latest(state().forgottenThrough, stored?.forgottenThrough ?? origin)
  }

  /** The stored state of a channel, without the events that have fallen out of its window by now. */
  function stateOf(channel: string, at: number): ChannelState {
    const key = channelKey(channel)
    const sealed = store.get(key)
    if (!sealed) return { ...unknownChannel, trimmedThrough: forgottenThrough() }
    const found = openChannelState(key, sealed)
    if (!found) {
      requestSweep(channel)
      return { ...unknownChannel, trimmedThrough: announced() }
    }
    const trimming = { window: windows.of(channel), now: at, marks, atMost: trimsLeft }
    const { steps, isCutShort } = trimChannel(store, found, [], trimming)
    if (steps > 0 || isCutShort) requestSweep(channel)
    if (steps > 0) countTrims(steps)
    return found
  }

  /** Counts per turn, not per page: a turn with a thousand pages must not take a thousand times as long. */
  function countTrims(steps: number): void {
    if (trimsLeft === trimAtMost) {
      environment.endOfTurn(() => {
        trimsLeft = trimAtMost
      })
    }
    trimsLeft -= steps
  }
}

const unknownChannel: ChannelState = {
  number: 0,
  newest: origin,
  trimmedThrough: origin,
  invalidatedThrough: origin,
  events: 0,
  bytes: 0,
  oldestAt: 0,
  emptySince: 0,
}

/**
 * One page of channels and patterns, in order. When the feed does not cover a pattern, returns that pattern as `tooFar`: the
 * caller then reads it by a look at every channel, and calls again.
 *
 * @param far - the patterns that the caller has read in that way
 */
function readPage(
  source: PageSource,
  selectors: readonly string[],
  range: PageRange,
  far: ReadonlyMap<string, SelectorRead>,
): Page | { readonly tooFar: string } {
  const reads: SelectorRead[] = []
  for (const selector of selectors) {
    const read =
      far.get(selector) ??
      (isPattern(selector) ? readByFeed(source, selector, range) : readOne(source, selector, range))
    if (!read) return { tooFar: selector }
    reads.push(read)
  }
  return pageOf(selectors, reads, range, (pattern) => lossByFeed(source, pattern, range))
}

/** The first batch of a tail that is opened in the past. It begins after the newest position where an event is missing. */
function readBacklog(source: WindowSource, after: Position, through: Position): TailBatch {
  const { store, marks, forgottenThrough, stateOf } = source
  let from = [after, forgottenThrough, ...marks].reduce(latest)
  const changed: [name: string, state: ChannelState][] = []
  const ends: LogEvent[] = []
  for (const { key } of store.range(channelKey(''), afterChannels)) {
    const state = stateOf(channelOf(key))
    from = latest(from, state.trimmedThrough)
    if (isAfter(state.newest, after)) changed.push([channelOf(key), state])
    if (state.ended) ends.push(endOf(channelOf(key), state))
  }
  for (;;) {
    const range = { after: from, through, limit: everything }
    const reads = changed.map(([name, state]) => readChannel(source, name, state, range))
    // Without a limit, only a gap cuts a read short.
    const gaps = reads.flatMap((read) => {
      if ('wholeAfter' in read) return read.wholeAfter
      return read.cut ? (read.events.at(-1) as LogEvent).position : []
    })
    if (gaps.length === 0) {
      const whole = reads.map((read) => ({ events: (read as ChannelEvents).events, through }))
      const { events } = mergePages(whole, range)
      const later = ends.filter((end) => isAfter(end.position, from))
      return { after: from, events: [...events, ...later].sort((a, b) => comparePositions(a.position, b.position)) }
    }
    from = gaps.reduce(latest, from)
  }
}

/** The entry of a channel's end. The store does not keep the time of an end, so the time is that of the position. */
function endOf(channel: string, { ended, newest }: ChannelState): LogEvent {
  const position = ended as Position
  return { kind: 'end', channel, type: '', data: '', position, at: position.ms, previous: newest }
}

const everything: PageLimit = { events: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }
