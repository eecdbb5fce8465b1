import type { Hub } from '../hub/hub.ts'
import type { ReaderFacts, ReaderObservation, RejectedReader } from '../hub/observation.ts'
import { createLineRation } from './line-ration.ts'
import { causeText, plainText } from './plain-text.ts'
import type { ReconnectReport } from './reconnect-reports.ts'

/** One line of a log, with names in snake_case. docs/guides/observe.md lists the fields by `event`. */
export type LogLine = { readonly level: LogLevel; readonly event: string } & Readonly<Record<string, unknown>>

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogLinesOptions {
  /**
   * The least important lines that are still written. Publishes are `debug`, and so is a line for each of many readers.
   * @defaultValue 'info'
   */
  level?: LogLevel
}

/** A request that was rejected, as the operator is told of it. */
export interface RejectedRequest extends Omit<RejectedReader, 'action'> {
  /** What was asked for; left out, to read. */
  readonly action?: string
  /** Of the page that sent the request, if one did. */
  readonly origin?: string
}

export interface LogLines {
  /** From now on, says what becomes of the hub's readers. */
  watch(hub: Pick<Hub, 'on'>): void
  /** Your program rejected a request before the hub saw it. Of the others it says so by itself, once it watches the hub. */
  rejected(request: RejectedRequest): void
  /** A client told, once it was back, that it had lost its connection. */
  reconnected(report: ReconnectReport): void
  /** Tells what was counted so far; for a program that ends. */
  flush(): void
}

/**
 * The lines that `rejoin serve` writes about readers, for the logger of your own program. Text that others chose comes without
 * control characters and bounded. A crowd does not flood them: of lines about single readers 100 are written in ten seconds, and
 * `sse_more` counts the rest; with the level `debug` all are written.
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
  // Their own, so that a flood of them hides none of the lines about readers that were let in.
  const rejections = createLineRation(more)
  const all = isWritten('debug')

  /**
   * A line about one reader: with `debug` each of them, else as many as a person can follow.
   * @param fields - called for a line that is written; when thousands return at once, most are not.
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
          ...requestedFields(reader, requested),
          found_in_window: true,
          caught_up: true,
          replayed_count: replayed,
          elapsed_ms: elapsedMs,
          absence_ms: absenceMs,
        }))
      })
      hub.on('gap', (reader) => {
        const { requested, reason, absenceMs, resuming } = reader
        say('warn', resuming ? 'sse_replay' : 'sse_gap', () => ({
          ...requestedFields(reader, requested),
          found_in_window: false,
          reason,
          absence_ms: absenceMs,
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
            ...requestedFields(reader, requested),
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
      // Not even listened for otherwise: there are more of these than of anything else.
      if (isWritten('debug')) {
        hub.on('publish', ({ channel, type, id, bytes, subject }) => {
          line('debug', { event: 'publish', ...publishFields({ channel, type, id, bytes, subject }) })
        })
      }
    },

    rejected,
    reconnected({ attempt, delayMs, url, timestamp, ip, userAgent }) {
      say('info', 'sse_reconnect', () => ({
        attempt,
        delay_ms: delayMs,
        url: url === null ? null : plainText(url, 512),
        timestamp: plainText(timestamp, 40),
        ...readerFields({ ip, userAgent, subject: null }),
      }))
    },
    flush() {
      ration.flush()
      rejections.flush()
    },
  }
}

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

type Fields = { readonly event: string } & Readonly<Record<string, unknown>>

// A subscription may name 100 channels of 256 bytes each, and a reader in a loop would fill a disk with them.
const maxChannels = 10

function connectionFields(reader: ReaderObservation) {
  return { connection_id: reader.connection, ...channelFields(reader.channels), ...readerFields(reader) }
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
