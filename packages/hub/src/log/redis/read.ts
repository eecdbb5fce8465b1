import { isAfter, isPattern, isSame, latest, origin, type Position, prefixOf } from '@rejoin/protocol'
import { mergeBackPages, shareOfBackPage } from '../back-pages.ts'
import type { BackPage, Gap, LogEvent, Page, PageLimit, TypedPosition } from '../contract.ts'
import { mergePages, type PartRead } from '../merged-page.ts'
import { createWidePage } from '../wide-page.ts'
import { lossRecordedAt } from './branches.ts'
import { parseEvents, parsePosition, positionText } from './entry.ts'
import type { Ask, Reply } from './link.ts'
import type { KnownState } from './state.ts'

export interface Range {
  readonly after: Position
  readonly through: Position
  readonly limit: PageLimit
}

/** The events of one selector in a range, and how far the selector has trimmed events. */
type SelectorRead = PartRead & Lost

interface Lost {
  /** Set when the read has come to a mark. */
  readonly mark?: Mark
  /** The newest position that the selector no longer holds. After the start of the range, it is a gap. */
  readonly trimmedThrough: Position
  readonly forced: boolean
}

type Mark = Required<Pick<Gap, 'wholeAfter' | 'lostBefore'>>

/** @param text - the position of a mark, and of the mark before its loss when that is another one; '' for none */
function parseMark(text: string): Mark | undefined {
  if (text === '') return undefined
  const [at = '', lostBefore = at] = text.split('<')
  return { wholeAfter: parsePosition(at), lostBefore: parsePosition(lostBefore) }
}

export async function readPage(
  ask: Ask,
  selectors: readonly string[],
  range: Range,
  state: Pick<KnownState, 'history'>,
): Promise<Page> {
  const { after } = range
  const channels = selectors.filter((selector) => !isPattern(selector))
  const patterns = selectors.filter(isPattern)
  const reads = new Map<string, SelectorRead>()
  const found = await Promise.all([
    readChannels(ask, channels, range),
    ...patterns.map(async (name) => [await readPattern(ask, prefixOf(name), range)]),
  ])
  for (const [index, read] of found.flat().entries()) reads.set([...channels, ...patterns][index] as string, read)
  const gap = gapOf(selectors, reads, after, state)
  if (gap) return { events: [], completeThrough: after, gap }
  return beforeMark(mergePages([...reads.values()], range), reads, after)
}

/** A page that has come to a mark ends with its last event. Without an event it is the mark. */
function beforeMark(page: Page, reads: ReadonlyMap<string, SelectorRead>, after: Position): Page {
  const { events, completeThrough } = page
  const marked = [...reads].filter(([, { mark }]) => mark && isSame(mark.wholeAfter, completeThrough))
  const mark = marked[0]?.[1].mark
  if (!mark) return page
  const last = events.at(-1)
  if (last) return { events, completeThrough: last.position }
  const channels = marked.map(([selector]) => selector)
  return { events, completeThrough: after, gap: { channels, reason: 'epoch', ...mark, isMark: true } }
}

function gapOf(
  selectors: readonly string[],
  reads: ReadonlyMap<string, SelectorRead>,
  after: Position,
  { history }: Pick<KnownState, 'history'>,
): Gap | undefined {
  const lost = selectors.filter((selector) => isAfter((reads.get(selector) as SelectorRead).trimmedThrough, after))
  if (lost.length === 0) return undefined
  const all = [...reads.values()]
  const isRolledBack = ({ trimmedThrough }: SelectorRead) => lossRecordedAt(history, trimmedThrough) !== undefined
  const byBranch = lost.some((selector) => isRolledBack(reads.get(selector) as SelectorRead)) ? 'epoch' : 'expired'
  return {
    channels: lost,
    reason: all.some(({ forced }) => forced) ? 'forced' : byBranch,
    wholeAfter: all.map(({ trimmedThrough }) => trimmedThrough).reduce(latest),
  }
}

async function readChannels(ask: Ask, channels: readonly string[], range: Range): Promise<SelectorRead[]> {
  if (channels.length === 0) return []
  const reply = await ask('read', ...rangeArguments(range), ...channels)
  return reply.map((channel) => readChannel(channel as Reply, range))
}

function readChannel(reply: Reply, range: Range): SelectorRead {
  const { after } = range
  const [newest, trimmed, invalidated, cut, flat, marked] = reply as [string, string, string, string, string[], string]
  const trimmedThrough = parsePosition(trimmed)
  const forced = isAfter(parsePosition(invalidated), after)
  const events = parseEvents(flat)
  if (isAfter(trimmedThrough, after)) return { events: [], through: after, trimmedThrough, forced }
  const isWhole = (event: LogEvent, index: number) =>
    !isAfter(event.previous, events[index - 1]?.position ?? latest(after, trimmedThrough))
  const gapAt = events.findIndex((event, index) => !isWhole(event, index))
  // An event names as `previous` a mark that is no longer listed, or an event that is gone. The events before such a gap are
  // whole, and are served first.
  if (gapAt === 0) {
    const last = events.findLast((event, index) => !isWhole(event, index)) as LogEvent
    return gapBehind(last.previous, after)
  }
  if (gapAt > 0) return { events: events.slice(0, gapAt), through: endOf(events[gapAt - 1]), trimmedThrough, forced }
  if (cut === '1') return { events, through: endOf(events.at(-1)), trimmedThrough, forced }
  const mark = parseMark(marked)
  if (mark) return { events, through: mark.wholeAfter, mark, trimmedThrough, forced }
  const last = events.at(-1)?.position ?? after
  const isMissing = isAfter(parsePosition(newest), last) && !isAfter(parsePosition(newest), range.through)
  if (!isMissing) return { events, through: range.through, trimmedThrough, forced }
  if (events.length === 0) return gapBehind(parsePosition(newest), after)
  return { events, through: last, trimmedThrough, forced }
}

function endOf(event: LogEvent | undefined): Position {
  return (event as LogEvent).position
}

function gapBehind(trimmedThrough: Position, after: Position): SelectorRead {
  return { events: [], through: after, trimmedThrough, forced: false }
}

/**
 * Reads a pattern from the feed, which leads only to channels with new events. When the feed does not reach back far enough, asks
 * Redis for the channels of the pattern that have something.
 */
async function readPattern(ask: Ask, prefix: string, range: Range): Promise<SelectorRead> {
  const [found, ...rest] = await ask('search', ...rangeArguments(range), prefix)
  if (found === 'far') return readBelow(ask, prefix, range)
  const [trimmed, invalidated, complete, flat, marked] = rest as [string, string, string, string[], string]
  const through = parsePosition(complete)
  const mark = parseMark(marked)
  return {
    ...{ events: parseEvents(flat), through },
    ...(mark && isSame(mark.wholeAfter, through) ? { mark } : {}),
    trimmedThrough: parsePosition(trimmed),
    forced: isAfter(parsePosition(invalidated), range.after),
  }
}

/** Looks at every channel, some at a time. A million channels take two thousand calls, and the memory of one page. */
async function readBelow(ask: Ask, prefix: string, range: Range): Promise<SelectorRead> {
  const { after, through, limit } = range
  let page = createWidePage(range)
  let mark: Mark | undefined
  let trimmedThrough = origin
  let forced = false
  let behind = ''
  do {
    const bounds = [positionText(after), positionText(through)]
    const found = await ask('changed', prefix, behind, String(channelsAtATime), ...bounds)
    const [last, trimmed, invalidated, changed, marked] = found as [string, string, string, string[], string]
    if (behind === '') {
      mark = parseMark(marked)
      if (mark) page = createWidePage({ ...range, through: mark.wholeAfter })
    }
    behind = last
    trimmedThrough = latest(trimmedThrough, parsePosition(trimmed))
    forced ||= isAfter(parsePosition(invalidated), after)
    for (let index = 0; index < changed.length && !isAfter(trimmedThrough, after); index += readAtATime) {
      const some = changed.slice(index, index + readAtATime)
      const share = { events: page.share(some.length), bytes: Math.ceil(limit.bytes / some.length) }
      // Reads up to the end of the page so far. The page needs no later events.
      const reads = await readChannels(ask, some, { after, through: page.through, limit: share })
      const lost = reads.filter((read) => isAfter(read.trimmedThrough, after))
      trimmedThrough = lost.reduce((position, read) => latest(position, read.trimmedThrough), trimmedThrough)
      forced ||= lost.some((read) => read.forced)
      if (lost.length === 0) page.add(reads.map(({ events, through }) => ({ events, through })))
    }
  } while (behind !== '')
  if (isAfter(trimmedThrough, after)) return { events: [], through: after, trimmedThrough, forced }
  const part = page.result() as PartRead
  return { ...part, trimmedThrough, forced, ...(mark && isSame(mark.wholeAfter, part.through) ? { mark } : {}) }
}

// Each call takes Redis a millisecond.
const channelsAtATime = 500
const readAtATime = 50

/** The newest positions of channels and patterns, newest first. Undefined when the feed does not reach back so far. */
export async function readBack(
  ask: Ask,
  selectors: readonly string[],
  range: Omit<Range, 'limit'> & { readonly most: number },
): Promise<BackPage | undefined> {
  const most = shareOfBackPage(range.most, selectors.length)
  const asked = selectors.map((selector) => (isPattern(selector) ? `*${prefixOf(selector)}` : selector))
  const reply = await ask('back', positionText(range.after), positionText(range.through), String(most), ...asked)
  if (reply[0] === 'far') return undefined
  return mergeBackPages(reply.map((page) => backPageOf(page as [string, string, string[]])))
}

function backPageOf([complete, whole, flat]: [string, string, string[]]): BackPage {
  const positions: TypedPosition[] = []
  for (let index = 0; index < flat.length; index += 2) {
    positions.push({ position: parsePosition(flat[index] as string), type: flat[index + 1] as string })
  }
  return { positions, completeAfter: parsePosition(complete), wholeAfter: parsePosition(whole) }
}

function rangeArguments({ after, through, limit }: Range): string[] {
  return [positionText(after), positionText(through), bound(limit.events), bound(limit.bytes)]
}

// Lua cannot read `Infinity`.
function bound(value: number): string {
  return String(Math.min(value, Number.MAX_SAFE_INTEGER))
}

/** The newest event of each key, oldest first. Undefined when there are too many to be read at once. */
export async function retainedOf(ask: Ask, selectors: readonly string[]): Promise<readonly LogEvent[] | undefined> {
  const asked = selectors.map((selector) => (isPattern(selector) ? `*${prefixOf(selector)}` : selector))
  const [found, flat] = await ask('retained', ...asked)
  if (found === 'unknown') return undefined
  return parseEvents(flat as string[]).sort((a, b) => (isAfter(a.position, b.position) ? 1 : -1))
}
