import { isPattern, patternsOver } from '@rejoin/protocol'
import type { Totals } from '../observation.ts'
import type { Frame } from './frame.ts'
import { type Shape, shapedParts } from './shape.ts'
import { type SharedBytes, shareBytes } from './sink.ts'
import { type Subscription, wants } from './subscription.ts'

/** What the live side needs of a session. */
export interface LiveReader {
  readonly subscription: Subscription
  /** Returns false when the reader is full and has to leave the live side. */
  push(bytes: SharedBytes): boolean
}

/** A moment of the hub: the wall clock, and how many events it has seen. */
export interface Moment {
  readonly now: number
  readonly count: number
}

/**
 * The live readers, grouped by identical subscription. The frames of a turn are joined once for each group, and its members get
 * the same buffer.
 */
export interface Audiences<Reader extends LiveReader> {
  add(reader: Reader, moment: Moment): void
  remove(reader: Reader): void
  has(reader: Reader): boolean
  readers(): Reader[]
  readersOf(channel: string): Reader[]
  isHeard(channel: string): boolean
  /**
   * Gives every reader the frames that it asked for, in one write per reader. If a cut fell between two writes, a reader could
   * have a later event of one channel without an earlier event of another, and would return with the later id.
   */
  deliver(frames: readonly Frame[], moment: Moment, onFull: (reader: Reader) => void): void
  /** Writes a checkpoint to the audiences that got no id for long. */
  checkpoint(moment: Moment, encode: () => SharedBytes, onFull: (reader: Reader) => void): void
}

// A cursor that lags by more could leave the window by age, or cause a long search on return.
const maxLagMs = 60_000
const maxLagEvents = 1000

export function createAudiences<Reader extends LiveReader>(totals: Totals): Audiences<Reader> {
  const audiences = new Map<string, Audience<Reader>>()
  /** The audiences that listen to each selector. */
  const bySelector = new Map<string, Set<Audience<Reader>>>()
  let patterns = 0

  function open(subscription: Subscription, moment: Moment): Audience<Reader> {
    const audience: Audience<Reader> = { subscription, readers: new Set(), run: undefined, idWritten: moment }
    audiences.set(subscription.key, audience)
    for (const selector of subscription.selectors) {
      const interested = bySelector.get(selector)
      if (interested) interested.add(audience)
      else bySelector.set(selector, new Set([audience]))
      if (isPattern(selector)) patterns += 1
    }
    return audience
  }

  function close(audience: Audience<Reader>): void {
    audiences.delete(audience.subscription.key)
    for (const selector of audience.subscription.selectors) {
      const interested = bySelector.get(selector)
      interested?.delete(audience)
      if (interested?.size === 0) bySelector.delete(selector)
      if (isPattern(selector)) patterns -= 1
    }
  }

  /** The audiences of a channel. None comes twice, because the selectors of one subscription do not overlap. */
  function* audiencesOf(channel: string): Generator<Audience<Reader>> {
    yield* bySelector.get(channel) ?? []
    if (patterns === 0) return
    for (const pattern of patternsOver(channel)) yield* bySelector.get(pattern) ?? []
  }

  function write(
    audience: Audience<Reader>,
    bytes: SharedBytes,
    moment: Moment,
    onFull: (reader: Reader) => void,
  ): void {
    audience.idWritten = moment
    for (const reader of audience.readers) {
      if (!reader.push(bytes)) onFull(reader)
    }
  }

  return {
    add(reader, moment) {
      const audience = audiences.get(reader.subscription.key) ?? open(reader.subscription, moment)
      audience.readers.add(reader)
    },
    remove(reader) {
      const audience = audiences.get(reader.subscription.key)
      audience?.readers.delete(reader)
      if (audience?.readers.size === 0) close(audience)
    },
    has(reader) {
      return audiences.get(reader.subscription.key)?.readers.has(reader) ?? false
    },
    readers() {
      return [...audiences.values()].flatMap((audience) => [...audience.readers])
    },
    readersOf(channel) {
      return [...audiencesOf(channel)].flatMap((audience) => [...audience.readers])
    },
    isHeard: (channel) => bySelector.has(channel) || (patterns > 0 && !audiencesOf(channel).next().done),
    deliver(frames, moment, onFull) {
      const touched: Audience<Reader>[] = []
      const starts = { plain: startRun(undefined), channel: startRun('channel'), envelope: startRun('envelope') }
      for (const frame of frames) {
        const interested = patterns > 0 ? audiencesOf(frame.channel) : bySelector.get(frame.channel)
        // In a hub with many channels, most events have no reader.
        if (!interested) continue
        for (const audience of interested) {
          if (!wants(audience.subscription, frame)) continue
          if (!audience.run) touched.push(audience)
          audience.run = extend(audience.run ?? starts[audience.subscription.shape ?? 'plain'], frame)
        }
      }
      for (const audience of touched) {
        const run = audience.run as Run
        audience.run = undefined
        run.bytes ??= shareBytes(partsOf(run))
        totals.deliveries += run.length * audience.readers.size
        write(audience, run.bytes, moment, onFull)
      }
    },
    checkpoint(moment, encode, onFull) {
      let bytes: SharedBytes | undefined
      for (const audience of audiences.values()) {
        const { now, count } = audience.idWritten
        const lagging = moment.count - count > maxLagEvents || (moment.now - now > maxLagMs && moment.count > count)
        if (!lagging) continue
        bytes ??= encode()
        write(audience, bytes, moment, onFull)
      }
    },
  }
}

interface Audience<Reader> {
  readonly subscription: Subscription
  readonly readers: Set<Reader>
  /** The frames that it gets of the turn that is being delivered. */
  run: Run | undefined
  /** When its readers were last sent an id. A reader that joined later has a newer id from its own replay. */
  idWritten: Moment
}

/** A sequence of frames of one turn. Audiences with the same sequence have the same run, and share its bytes. */
interface Run {
  readonly shape: Shape | undefined
  readonly frame: Frame | undefined
  readonly length: number
  readonly before: Run | undefined
  /** The run that adds the newest frame to this one. One is enough, because frames are handed out one after the other. */
  extended: Run | undefined
  bytes: SharedBytes | undefined
}

function startRun(shape: Shape | undefined): Run {
  return { shape, frame: undefined, length: 0, before: undefined, extended: undefined, bytes: undefined }
}

function extend(run: Run, frame: Frame): Run {
  if (run.extended?.frame !== frame) {
    run.extended = {
      shape: run.shape,
      frame,
      length: run.length + 1,
      before: run,
      extended: undefined,
      bytes: undefined,
    }
  }
  return run.extended as Run
}

function partsOf(run: Run): Uint8Array[] {
  const parts: Uint8Array[] = []
  for (let at = run; at.frame; at = at.before as Run) {
    // All frames of a run have one shape. Most runs have none, and need no list of pieces for each frame.
    if (run.shape === undefined) parts.push(at.frame.bytes)
    else parts.push(...[...shapedParts(at.frame, run.shape)].reverse())
  }
  return parts.reverse()
}
