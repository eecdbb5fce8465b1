import type { Frame } from '../live/frame.ts'
import type { HubObservations, Observers, ReaderObservation, UnfinishedReplay } from '../observation.ts'
import type { Session } from './session.ts'

/** Counts the events that a returning reader is sent until it has caught up. */
export class ReplayReport {
  /** The cursor that the reader brought, as logs show it. */
  readonly requested: string
  replayed = 0
  /** The age of the first event that the reader had missed. */
  absenceMs: number | null = null

  constructor(requested: string) {
    this.requested = requested
  }

  add(frames: readonly Frame[], now: number): void {
    const [first] = frames
    if (this.replayed === 0 && first) this.absenceMs = Math.max(0, now - first.at)
    this.replayed += frames.length
  }

  unfinished(found: UnfinishedReplay['found']): UnfinishedReplay {
    return { requested: this.requested, found, replayed: this.replayed }
  }
}

// The frequent observations are built field by field: a spread takes many times as long.

export function reportConnect(
  observers: Observers,
  { connection, reader, subscription }: Session,
  { requested, resuming }: Details<'connect'>,
): void {
  const { ip, userAgent, subject } = reader
  const { selectors } = subscription
  observers.tell('connect', { connection, channels: selectors, ip, userAgent, subject, requested, resuming })
}

/** The reader had returned with a cursor, and has caught up. */
export function reportReplay(
  observers: Observers,
  { connection, reader, subscription }: Session,
  { requested, replayed, elapsedMs, absenceMs }: Details<'replay'>,
): void {
  const { ip, userAgent, subject } = reader
  const { selectors } = subscription
  const replay = { connection, channels: selectors, ip, userAgent, subject, requested, replayed, elapsedMs, absenceMs }
  observers.tell('replay', replay)
}

/** @param channels - the channels that lost something */
export function reportGap(
  observers: Observers,
  { connection, reader }: Session,
  channels: readonly string[],
  gap: Details<'gap'>,
): void {
  observers.tell('gap', { connection, channels, ...reader, ...gap })
}

export function reportStall(observers: Observers, { connection, reader, subscription, pending }: Session): void {
  observers.tell('stall', { connection, channels: subscription.selectors, ...reader, pending })
}

export function reportClose(
  observers: Observers,
  { connection, reader, subscription }: Session,
  { reason, durationMs, cause, unfinished }: Details<'close'>,
): void {
  const { ip, userAgent, subject } = reader
  const { selectors } = subscription
  const close = { connection, channels: selectors, ip, userAgent, subject, reason, durationMs, cause, unfinished }
  observers.tell('close', close)
}

/** The fields of an observation that do not come from the session itself. */
type Details<Kind extends keyof HubObservations> = Omit<HubObservations[Kind], keyof ReaderObservation>
