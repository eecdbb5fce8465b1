import type { Hub } from '../hub/hub.ts'
import type { ReaderFacts, ReaderObservation, RejectedReader } from '../hub/observation.ts'
import { createLineRation } from './line-ration.ts'
import { causeText, plainText } from './plain-text.ts'
import type { ReconnectReport } from './reconnect-reports.ts'

/** One line for the operator, with fields in snake_case. docs/guides/observe.md lists the fields of each `event`. */
export type LogLine = { readonly level: LogLevel; readonly event: string } & Readonly<Record<string, unknown>>

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogLinesOptions {
  /**
   * Lines below this level are not written. With `debug`, every publish gets a line, and so does every reader in a crowd.
   * @defaultValue 'info'
   */
  level?: LogLevel | undefined
}

/** A rejected request, for the operator's log. */
export interface RejectedRequest extends Omit<RejectedReader, 'action'> {
  /** What the requester wanted to do; left out, it wanted to read. */
  readonly action?: string
  /** The origin of the page that sent the request, if a page did. */
  readonly origin?: string
}

export interface LogLines {
  /** From now on, writes lines about the hub's readers. */
  watch(hub: Pick<Hub, 'on'>): void
  /** Writes a line about a request that your program rejected before the hub saw it. `watch` covers the hub's own rejections. */
  rejected(request: RejectedRequest): void
  /** Writes a line about a client that reported, after its return, that it had lost its connection. */
  reconnected(report: ReconnectReport): void
  /** Reports the lines that were counted so far. Call it before the program ends. */
  flush(): void
}

/**
 * The lines that `rejoin serve` writes about readers, for the logger of your own program. Text that a client chose has no control
 * characters, and a bounded length. A crowd does not flood the log: in ten seconds, 100 lines about single readers are written,
 * and `sse_more` counts the rest. With the level `debug` all lines are written.
 *
 * @param write - called with each line: `(line) => logger[line.level](line)`
 */
export function createLogLines(write: (line: LogLine) => void, { level = 'info' }: LogLinesOptions = {}): LogLines {
  const least = levels.indexOf(level)
  const isWritten = (level: LogLevel) => levels.indexOf(level) >= least
  const line = (level: LogLevel, fields: Fields) => {
    if (isWritten(level)) write({ level, ...fields })
  }
  const more = (counts: Readonly<Record<string, number>>) => line('info', { event: 'sse_more', ...counts })
  const ration = createLineRation(more)
  // A ration of their own, so that a flood of rejections hides no lines about readers that were let in.
  const rejections = createLineRation(more)
  // Clients can invent reports, and send thousands of them.
  const reports = createLineRation(more)
  const all = isWritten('debug')

  /**
   * Writes a line about one reader: with `debug` always, else within the ration.
   * @param fields - called only for a line that is written: when thousands return at once, most are not.
   */
  function say(level: LogLevel, event: string, fields: () => object, within = ration): void {
    if (isWritten(level) && (all || within.take(event))) write({ level, event, ...fields() })
  }

  function rejected(request: RejectedRequest): void {
    const { channels, reason, status, action, origin } = request
    const fields = () => {
      const from = origin === undefined ? {} : { origin: plainText(origin) }
      return { ...readerFields(request), ...channelFields(channels), ...from, status, reason }
    }
    if (action === undefined) say('warn', 'sse_reject', fields, rejections)
    else say('warn', 'request_reject', () => ({ action, ...fields() }), rejections)
  }

  return {
    watch(hub) {
      hub.on('connect', (reader) => {
        const { requested, resuming } = reader
        say('info', 'sse_connect', () => ({ ...connectionFields(reader), last_event_id: idField(requested), resuming }))
      })
      hub.on('replay', (reader) => {
        const { requested, replayed, elapsedMs, absenceMs } = reader
        say('info', 'sse_replay', () => ({
          ...replayFields(reader, requested),
          found_in_window: true,
          caught_up: true,
          replayed_count: replayed,
          elapsed_ms: elapsedMs,
          absence_ms: absenceMs,
        }))
      })
      hub.on('gap', (reader) => {
        const { requested, reason, absenceMs, resuming, replayed } = reader
        const missed = { found_in_window: false, reason, absence_ms: absenceMs }
        if (!resuming) return say('warn', 'sse_gap', () => ({ ...requestedFields(reader, requested), ...missed }))
        say('warn', 'sse_replay', () => ({
          ...replayFields(reader, requested),
          ...missed,
          caught_up: false,
          replayed_count: replayed,
        }))
      })
      hub.on('window', ({ channel, absenceMs, has, needs }) => {
        line('warn', {
          event: 'window_small',
          channel: plainText(channel),
          absence_ms: absenceMs,
          max_events: has.maxEvents,
          max_age_ms: has.maxAgeMs,
          needed_events: needs.maxEvents,
          needed_age_ms: needs.maxAgeMs,
        })
      })
      hub.on('stall', (reader) => {
        say('warn', 'sse_stall', () => ({ ...connectionFields(reader), pending_bytes: reader.pending }))
      })
      hub.on('close', (reader) => {
        const { reason, durationMs, cause, unfinished } = reader
        if (unfinished) {
          const { requested, found, replayed } = unfinished
          say('info', 'sse_replay', () => ({
            ...replayFields(reader, requested),
            found_in_window: found,
            caught_up: false,
            replayed_count: replayed,
            reason,
          }))
        }
        const fields = () => ({ ...connectionFields(reader), reason, duration_ms: durationMs })
        if (cause) say('error', 'sse_disconnect', () => ({ ...fields(), cause: causeText(cause) }))
        else say('info', 'sse_disconnect', fields)
      })
      hub.on('reject', rejected)
      hub.on('silence', ({ silentMs, cause, local = false }) => {
        if (cause) line('error', { event: 'log_lost', cause: causeText(cause) })
        else line('error', { event: 'log_silent', silent_ms: Math.round(silentMs), local })
      })
      hub.on('local', ({ channel, type, id, bytes, subject }) => {
        line('warn', { event: 'publish_local', ...publishFields({ channel, type, id, bytes, subject }) })
      })
      hub.on('healed', ({ channels }) => line('warn', { event: 'log_healed', ...channelFields(channels) }))
      hub.on('error', ({ cause }) => line('error', { event: 'request_failed', cause: causeText(cause) }))
      // Without `debug` there is no listener at all, because publishes are the most frequent observations.
      if (isWritten('debug')) {
        hub.on('publish', ({ channel, type, id, bytes, subject }) => {
          line('debug', { event: 'publish', ...publishFields({ channel, type, id, bytes, subject }) })
        })
      }
    },

    rejected,
    reconnected({ attempt, delayMs, url, timestamp, ip, userAgent }) {
      say(
        'info',
        'sse_reconnect',
        () => ({
          attempt,
          delay_ms: delayMs,
          url: url === null ? null : plainText(url, 512),
          timestamp: plainText(timestamp, 40),
          ...readerFields({ ip, userAgent, subject: null }),
        }),
        reports,
      )
    },
    flush() {
      ration.flush()
      rejections.flush()
      reports.flush()
    },
  }
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

type Fields = { readonly event: string } & Readonly<Record<string, unknown>>

// A subscription may name 100 channels of 256 bytes each, and a reader in a loop would fill the disk with their names.
const maxChannels = 10

function connectionFields(reader: ReaderObservation) {
  return { connection_id: reader.connection, ...channelFields(reader.channels), ...readerFields(reader) }
}

/** Each replay names one channel, too: most readers have one, and a search for it has to match no list. */
function replayFields(reader: ReaderObservation, requested: string | null) {
  const [channel = ''] = reader.channels
  return { channel: plainText(channel), ...requestedFields(reader, requested) }
}

function requestedFields(reader: ReaderObservation, requested: string | null) {
  return { ...connectionFields(reader), requested_id: idField(requested) }
}

function channelFields(channels: readonly string[]) {
  const shown = channels.slice(0, maxChannels).map((name) => plainText(name))
  return channels.length <= maxChannels ? { channels: shown } : { channels: shown, channel_count: channels.length }
}

function readerFields({ ip, userAgent, subject }: ReaderFacts) {
  const agent = userAgent === null ? null : plainText(userAgent)
  return { client_ip: ip, user_agent: agent, ...subjectField(subject) }
}

function publishFields({ channel, type, id, bytes, subject }: Published) {
  return { channel: plainText(channel), type: plainText(type), id, bytes, ...subjectField(subject) }
}

interface Published {
  readonly channel: string
  readonly type: string
  readonly id: string
  readonly bytes: number
  readonly subject: string | null
}

function subjectField(subject: string | null) {
  return subject === null ? {} : { subject: plainText(subject) }
}

function idField(id: string | null): string | null {
  return id === null ? null : plainText(id, 128)
}
