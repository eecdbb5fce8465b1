import type { HubObservations, Observers, ReaderObservation } from '../observation.ts'
import type { Session } from './session.ts'

// Tells observers about a session. The frequent observations are built field by field: a spread takes many times as long.

export function tellConnect(
  observers: Observers,
  { connection, reader, subscription }: Session,
  { requested, resuming }: News<'connect'>,
): void {
  const { ip, userAgent, subject } = reader
  const { selectors } = subscription
  observers.tell('connect', { connection, channels: selectors, ip, userAgent, subject, requested, resuming })
}

/** The reader had returned with a cursor, and has caught up. */
export function tellReplay(
  observers: Observers,
  { connection, reader, subscription }: Session,
  { requested, replayed, elapsedMs, absenceMs }: News<'replay'>,
): void {
  const { ip, userAgent, subject } = reader
  const { selectors } = subscription
  const replay = { connection, channels: selectors, ip, userAgent, subject, requested, replayed, elapsedMs, absenceMs }
  observers.tell('replay', replay)
}

/** @param channels - the channels that lost something */
export function tellGap(
  observers: Observers,
  { connection, reader }: Session,
  channels: readonly string[],
  gap: News<'gap'>,
): void {
  observers.tell('gap', { connection, channels, ...reader, ...gap })
}

export function tellStall(observers: Observers, { connection, reader, subscription, pending }: Session): void {
  observers.tell('stall', { connection, channels: subscription.selectors, ...reader, pending })
}

export function tellClose(
  observers: Observers,
  { connection, reader, subscription }: Session,
  { reason, durationMs, cause, unfinished }: News<'close'>,
): void {
  const { ip, userAgent, subject } = reader
  const { selectors } = subscription
  const close = { connection, channels: selectors, ip, userAgent, subject, reason, durationMs, cause, unfinished }
  observers.tell('close', close)
}

/** The fields of an observation that do not come from the session itself. */
type News<Kind extends keyof HubObservations> = Omit<HubObservations[Kind], keyof ReaderObservation>
