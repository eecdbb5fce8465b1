import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { isAfter, type Position } from '@rejoin/protocol'
import type {
  AppendOptions,
  Log,
  LogEvent,
  NewEvent,
  PageLimit,
  Stamp,
  TailBatch,
  WindowOptions,
} from '../log/contract.ts'
import type { IdempotencyOptions } from '../log/idempotency.ts'
import type { VirtualEnvironment } from './virtual-environment.ts'

/** The setting in which a duty is tested: logs at one location, in virtual time. */
export interface Bench {
  readonly environment: VirtualEnvironment
  open(window?: WindowOptions, idempotency?: IdempotencyOptions, maxBytes?: number): Promise<Log>
  /** Notes what the log holds. The function that it resolves with puts that back, and resolves with the log to go on with. */
  rollBack?(log: Log): Promise<() => Promise<Log>>
}

/** Tests of duties, by name. */
export type Duties = Readonly<Record<string, (bench: Bench) => Promise<void>>>

export function entry(channel: string, data: string): NewEvent {
  return { channel, type: 'message', data }
}

export function dataOf(event: NewEvent): string {
  return event.data
}

export function atMost(events: number, bytes = Number.POSITIVE_INFINITY): PageLimit {
  return { events, bytes }
}

export type Stored = NewEvent & Stamp

export async function append(log: Log, entries: readonly NewEvent[], once?: AppendOptions['once']): Promise<Stored[]> {
  const { stamps } = await log.append(entries, { token: randomUUID(), ...(once ? { once } : {}) })
  assert.equal(stamps.length, entries.length)
  return entries.map((entry, index) => ({ ...entry, ...(stamps[index] as Stamp) }))
}

/** Appends one event per channel, one append each. The data is the index of the event. */
export async function appendAll(log: Log, channels: readonly string[]): Promise<Stored[]> {
  const events: Stored[] = []
  for (const [index, channel] of channels.entries()) events.push(...(await append(log, [entry(channel, `${index}`)])))
  return events
}

export async function readAll(
  log: Log,
  channels: readonly string[],
  after: Position,
  limit = 1000,
): Promise<LogEvent[]> {
  const events: LogEvent[] = []
  const through = await log.head()
  for (let cursor = after; isAfter(through, cursor); ) {
    const page = await log.read(channels, cursor, through, atMost(limit))
    assert.equal(page.gap, undefined)
    assert.ok(isAfter(page.completeThrough, cursor), 'a page must lead on')
    events.push(...page.events)
    cursor = page.completeThrough
  }
  return events
}

export function assertRising(positions: readonly Position[]): void {
  for (let index = 1; index < positions.length; index += 1) {
    const [before, after] = [positions[index - 1], positions[index]] as [Position, Position]
    assert.ok(isAfter(after, before), `${JSON.stringify(after)} does not stand after ${JSON.stringify(before)}`)
  }
}

export async function follow(log: Log, start: Position) {
  const batches: TailBatch[] = []
  const tail = await log.tail(start, (batch) => void batches.push(batch))
  return {
    batches,
    close: tail.close,
    events: () => batches.flatMap((batch) => batch.events),
    assertLinked(from: Position) {
      let position = from
      for (const batch of batches) {
        assert.deepEqual(batch.after, position)
        position = batch.events.at(-1)?.position ?? batch.after
      }
    },
  }
}
