/**
 * Reads a channel from a place to its end, by polls, and compares it with what was acknowledged: every event once, in order
 * and with its own data, or a gap announced first.
 */
export async function auditChannel(origin: string, { channel, kept, from }: Audited): Promise<Audit> {
  const audit: { events: number; gaps: number; unavailable?: string; wrong: string[] } = {
    events: 0,
    gaps: 0,
    wrong: [],
  }
  const places = new Map(kept.map(({ id }, index) => [id, index]))
  let cursor = from
  // Of what is kept, the first that has not come yet.
  let next = kept.findIndex(({ id }) => id > from)
  if (next === -1) next = kept.length
  for (let poll = 0; poll < maxPolls; poll += 1) {
    const response = await fetch(`${origin}/poll/${encodeURIComponent(channel)}?waitMs=0`, {
      headers: { 'Last-Event-ID': cursor },
    })
    if (response.status !== 200) return { ...audit, unavailable: `status ${response.status}: ${await response.text()}` }
    const answer = (await response.json()) as PollAnswer
    let events = 0
    for (const frame of answer.events) {
      if (frame.type === 'close') return { ...audit, unavailable: frame.data }
      if (frame.type === 'sync-required') {
        const { latest } = JSON.parse(frame.data) as { latest: string }
        audit.gaps += 1
        const after = kept.findIndex(({ id }) => id > latest)
        next = after === -1 ? kept.length : Math.max(after, next)
      } else if (frame.type === 'message') {
        events += 1
        take(frame)
      }
    }
    audit.events += events
    cursor = answer.cursor ?? cursor
    if (events === 0 && poll > 0) break
  }
  if (next < kept.length) {
    audit.wrong.push(
      `${channel}: ${kept.length - next} events from ${kept[next]?.id} on are missing, and nobody said so`,
    )
  }
  return audit

  function take({ id, data }: PollFrame): void {
    const place = places.get(id ?? '')
    const event = place === undefined ? undefined : kept[place]
    if (place === undefined || !event) audit.wrong.push(`${channel}: ${id} was never acknowledged`)
    else if (event.data !== data) audit.wrong.push(`${channel}: ${id} has other data than it was published with`)
    else if (place < next) audit.wrong.push(`${channel}: ${id} came again, or late`)
    else if (place > next)
      audit.wrong.push(`${channel}: ${place - next} events before ${id} were passed over in silence`)
    if (place !== undefined && place >= next) next = place + 1
  }
}

export interface Audited {
  readonly channel: string
  /** All events of the channel, oldest first. */
  readonly kept: readonly KeptEvent[]
  /** The cursor to begin with. */
  readonly from: string
}

export interface KeptEvent {
  readonly id: string
  readonly data: string
}

export interface Audit {
  readonly events: number
  /** Announced. */
  readonly gaps: number
  /** Why the hub would not, or no longer, serve it. */
  readonly unavailable?: string
  readonly wrong: readonly string[]
}

// Of a megabyte each; the logs that are audited are smaller.
const maxPolls = 100

interface PollAnswer {
  readonly events: readonly PollFrame[]
  readonly cursor: string | null
}

interface PollFrame {
  readonly id: string | null
  readonly type: string
  readonly data: string
}
