import type { Hub, ReaderFacts, Session, Sink } from '@rejoin/hub'
import type { CloseReason } from '@rejoin/protocol'

/** The streams that are open now, for operators. Polls come and go and are not among them. */
export interface Streams {
  /** To be called in place of the hub's own. */
  readonly subscribe: Hub['subscribe']
  /** A page of them, oldest first. `after` is the `number` of the last one of the page before. */
  list(options: ListOptions): OpenStream[]
  /** Ends those that match, with a reasoned `close`, spread over `withinMs`. Answers how many. */
  end(matches: (stream: OpenStream) => boolean, options: EndStreams): number
  /** How many are in which state, and how many bytes wait for them. */
  tally(): StreamTally
}

export interface OpenStream extends ReaderFacts {
  /** Counts the streams since the start. Unlike `connection`, no two have the same. */
  readonly number: number
  readonly connection: string
  readonly channels: readonly string[]
  readonly mode: Session['mode']
  /** Whether it is slow: more waits for it than it may have waiting. */
  readonly full: boolean
  readonly pendingBytes: number
  /** When it came, milliseconds since 1970. */
  readonly since: number
}

export interface ListOptions {
  readonly after: number
  readonly limit: number
  readonly subject?: string
  readonly channel?: string
}

export interface EndStreams {
  readonly reason: CloseReason
  /** @defaultValue 0, all at once */
  readonly withinMs?: number
  readonly retryMs?: number
}

export interface StreamTally {
  readonly live: number
  readonly replaying: number
  readonly full: number
  readonly pendingBytes: number
}

export function watchStreams(hub: Hub, now: () => number = Date.now): Streams {
  // By the name of the connection, which is all that the hub tells of one that has gone. Names are random and short: of
  // ten thousand streams some share one.
  const open = new Map<string, readonly Entry[]>()
  let count = 0

  hub.on('close', ({ connection }) => {
    const staying = (open.get(connection) ?? []).filter(({ session }) => session.mode !== 'ended')
    if (staying.length > 0) open.set(connection, staying)
    else open.delete(connection)
  })

  function* entries(): Generator<Entry> {
    for (const group of open.values()) yield* group
  }

  return {
    subscribe(request, sink) {
      const session = hub.subscribe(request, sink)
      if (session.mode === 'ended') return session
      count += 1
      const entry = { number: count, session, sink, since: now() }
      open.set(session.connection, [...(open.get(session.connection) ?? []), entry])
      return session
    },

    list({ after, limit, subject, channel }) {
      const isMeant = ({ number, session: { reader, subscription } }: Entry) =>
        number > after &&
        (subject === undefined || reader.subject === subject) &&
        (channel === undefined || subscription.channels.includes(channel))
      const meant = [...entries()].filter(isMeant).sort((one, other) => one.number - other.number)
      return meant.slice(0, limit).map(described)
    },

    end(matches, { reason, withinMs = 0, retryMs }) {
      const leaving = [...entries()].filter((entry) => matches(described(entry)))
      const options = retryMs === undefined ? {} : { retryMs }
      for (const [index, { session }] of leaving.entries()) {
        const afterMs = (withinMs * index) / leaving.length
        if (afterMs === 0) session.end(reason, options)
        else setTimeout(() => session.end(reason, options), afterMs).unref()
      }
      return leaving.length
    },

    tally() {
      const tally = { live: 0, replaying: 0, full: 0, pendingBytes: 0 }
      for (const { session, sink } of entries()) {
        if (session.full) tally.full += 1
        if (session.mode !== 'ended') tally[session.mode] += 1
        tally.pendingBytes += sink.pending
      }
      return tally
    },
  }
}

interface Entry {
  readonly number: number
  readonly session: Session
  readonly sink: Sink
  readonly since: number
}

function described({ number, session, sink, since }: Entry): OpenStream {
  const { connection, reader, subscription, mode, full } = session
  const { ip, userAgent, subject } = reader
  const { channels } = subscription
  return { number, connection, channels, ip, userAgent, subject, mode, full, pendingBytes: sink.pending, since }
}
