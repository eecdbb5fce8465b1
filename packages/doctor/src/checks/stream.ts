import { heartbeatAfter, type ProbeHello, type ProbeTick, probeId, spacedEvents } from '../probe.ts'
import type { OpenProbe } from '../probe-client.ts'
import type { TimedEvent } from '../reading.ts'
import { remedyFor } from '../remedies.ts'
import type { Check, Server } from '../report.ts'

/** The figures of one `spaced` probe that has ended. */
export interface SpacedResult {
  /** The delay of each event against the fastest event, in milliseconds, sorted. Without events whose data was changed. */
  readonly delays: readonly number[]
  /** Time from the request to the first byte of the body. */
  readonly firstByteMs: number
  /** Whether the last event of the probe arrived. */
  readonly isWhole: boolean
  /** How long the stream was open. */
  readonly openMs: number
}

export async function spacedResult({ reading }: OpenProbe, askedAt: number): Promise<SpacedResult> {
  await reading.ended
  const ticks = reading.events.filter(({ type }) => type === 'tick')
  // The two machines have different clocks, so the delay of an event is measured against the fastest event.
  const offsets = ticks.map((event) => event.at - tickOf(event).atMs).filter(Number.isFinite)
  const fastest = Math.min(...offsets)
  return {
    delays: offsets.map((offset) => offset - fastest).sort((one, other) => one - other),
    firstByteMs: (reading.firstByteAt ?? reading.endedAt ?? askedAt) - askedAt,
    isWhole: reading.events.some(({ type }) => type === 'end'),
    openMs: (reading.endedAt ?? askedAt) - askedAt,
  }
}

/** Whether the events came as they were sent. A pause of this machine delays some events; a proxy that buffers delays most. */
export function isSteady(result: SpacedResult): boolean {
  return result.isWhole && medianOf(result) < lumpyMs
}

export function isBetter(one: SpacedResult, other: SpacedResult): boolean {
  if (one.isWhole !== other.isWhole) return one.isWhole
  return medianOf(one) < medianOf(other)
}

function medianOf({ delays }: SpacedResult): number {
  return delays[Math.floor(delays.length / 2)] ?? 0
}

// A proxy that holds the whole probe back gives a median of 1 s. A proxy that waits 200 ms for more bytes before it sends, as
// HAProxy and TCP do, gives a median of 100 ms.
const heldBackMs = 250
const lumpyMs = 60

export function streamCheck(result: SpacedResult, server: Server): Check {
  const { delays, firstByteMs, isWhole, openMs } = result
  const lateMs = Math.round(delays[Math.ceil(delays.length * 0.99) - 1] ?? 0)
  const figures = { firstByteMs: Math.round(firstByteMs), lateMs, events: delays.length }
  const fault = { name: 'stream', state: 'fault', figures, remedy: remedyFor('stream', server) } as const
  if (medianOf(result) > heldBackMs) {
    return { ...fault, summary: `held back: events came up to ${lateMs} ms late, in lumps` }
  }
  if (!isWhole) {
    const summary = `cut after ${(openMs / 1000).toFixed(1)} s, in the middle of events`
    return { ...fault, summary, remedy: remedyFor('idle', server) }
  }
  if (!isSteady(result)) {
    const remedy = { ...fault.remedy, cost: 'Nothing is lost. A live page feels slower than it needs to.' }
    return {
      ...fault,
      state: 'hint',
      remedy,
      summary: `a little late: events wait for one another, ${lateMs} ms at most`,
    }
  }
  const summary = `first byte after ${figures.firstByteMs} ms, ${figures.events} events, ${lateMs} ms late at most`
  return { name: 'stream', state: 'good', summary, figures }
}

export function headerCheck(sent: string, { header }: ProbeHello, server: Server): Check {
  const name = 'header-cursor'
  if (header === sent) return { name, state: 'good', summary: 'Last-Event-ID reaches the hub' }
  const summary =
    header === null ? 'Last-Event-ID does not reach the hub' : `Last-Event-ID reaches the hub as ${quoted(header)}`
  return { name, state: 'fault', summary, remedy: remedyFor(name, server) }
}

export function queryCheck(sent: string, { query }: ProbeHello, server: Server): Check {
  const name = 'query-cursor'
  if (query === sent) return { name, state: 'good', summary: '?lastEventId= reaches the hub' }
  const summary =
    query === null ? '?lastEventId= does not reach the hub' : `?lastEventId= reaches the hub as ${quoted(query)}`
  return { name, state: 'fault', summary, remedy: remedyFor(name, server) }
}

export function idsCheck({ token, reading }: OpenProbe, server: Server): Check {
  const name = 'ids'
  const changed = reading.events.find((event) => event.type === 'tick' && event.id !== probeId(token, tickOf(event).n))
  if (!changed) return { name, state: 'good', summary: 'ids arrive byte by byte as the hub wrote them' }
  const { n } = tickOf(changed)
  const summary = Number.isNaN(n)
    ? `the data of an event was changed on the way: ${quoted(changed.data)} arrived`
    : `the hub wrote ${quoted(probeId(token, n))} and ${quoted(changed.id)} arrived`
  return { name, state: 'fault', summary, remedy: remedyFor(name, server) }
}

export function heartbeatCheck({ reading }: OpenProbe, { heartbeatMs }: ProbeHello, server: Server): Check {
  const name = 'heartbeats'
  const sent = Math.floor(reading.events.filter(({ type }) => type === 'tick').length / heartbeatAfter)
  const came = reading.comments.length
  const figures = { sent, came, heartbeatMs }
  if (came >= sent) {
    return { name, state: 'good', summary: `comments arrive; the hub sends one every ${heartbeatMs / 1000} s`, figures }
  }
  const summary = came === 0 ? 'no comment arrives, and heartbeats are comments' : `${came} of ${sent} comments arrived`
  return { name, state: 'fault', summary, figures, remedy: remedyFor(name, server) }
}

/** Whether enough events arrived to judge the probe. */
export function hasTicks({ reading }: OpenProbe): boolean {
  return reading.events.filter(({ type }) => type === 'tick').length >= spacedEvents / 2
}

function tickOf({ data }: TimedEvent): ProbeTick {
  try {
    const { n, atMs }: Partial<ProbeTick> = Object(JSON.parse(data))
    return { n: Number(n), atMs: Number(atMs) }
  } catch {
    // A filter has changed the data of this event. Its id counts as changed, and its delay is unknown.
    return { n: Number.NaN, atMs: Number.NaN }
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 60))
}
