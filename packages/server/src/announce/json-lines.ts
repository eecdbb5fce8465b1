import type { HubObservations, ReaderFacts, ReaderObservation } from '@rejoin/hub'
import { pino } from 'pino'
import { type Announcer, insecureWarning } from './announcer.ts'
import { createLineRation } from './line-ration.ts'
import { causeText, plainText } from './plain-text.ts'

/**
 * Announces to a program: one JSON object per line, with names in snake_case. The fields of the lines about readers are
 * listed in docs/guides/observe.md.
 */
export function jsonLines(output: JsonOutput, level: LogLevel = 'info'): Announcer {
  // By its number, pino survives a reader that goes away (`npm start | head -1`), which ends a program that writes to
  // `process.stdout`.
  const destination =
    output.fd === undefined ? { write: (line: string) => void output.write(line) } : pino.destination(output.fd)
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (name) => ({ level: name }) } },
    destination,
  )
  const ration = createLineRation((counts) => logger.info({ event: 'sse_more', ...counts }))
  const all = logger.isLevelEnabled('debug')

  /** A line about one reader: with `debug` each of them, else as many as a person can follow. */
  function say(level: 'info' | 'warn' | 'error', line: { readonly event: string } & Record<string, unknown>): void {
    if (logger.isLevelEnabled(level) && (all || ration.take(line.event))) logger[level](line)
  }

  return {
    ready({ version, url, adminUrl, log, folder, address, loopbackOnly, access }) {
      const { maxEvents, maxAgeMs, maxBytes } = log.window
      logger.info({
        event: 'server_ready',
        version,
        url,
        ...(adminUrl === undefined ? {} : { admin_url: adminUrl }),
        log: log.name,
        ...(folder === undefined ? {} : { folder }),
        ...(address === undefined ? {} : { address }),
        max_events: maxEvents,
        max_age_ms: maxAgeMs,
        max_bytes: maxBytes,
        loopback_only: loopbackOnly,
        access,
      })
      if (!loopbackOnly && !access) logger.warn({ event: 'server_insecure' }, insecureWarning)
    },

    watch(hub) {
      hub.on('connect', (reader) => {
        const { requested, resuming } = reader
        say('info', { event: 'sse_connect', ...connectionFields(reader), last_event_id: idField(requested), resuming })
      })
      hub.on('replay', (reader) => {
        const { replayed, elapsedMs, absenceMs } = reader
        const counts = { replayed_count: replayed, elapsed_ms: elapsedMs, absence_ms: absenceMs }
        say('info', { event: 'sse_replay', ...returnFields(reader), found_in_window: true, ...counts })
      })
      hub.on('gap', (reader) => {
        const { reason, absenceMs } = reader
        const why = { reason, absence_ms: absenceMs }
        say('warn', { event: 'sse_gap', ...returnFields(reader), found_in_window: false, ...why })
      })
      hub.on('window', ({ channel, absenceMs, has, needs }) => {
        logger.warn({
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
        say('warn', { event: 'sse_stall', ...connectionFields(reader), pending_bytes: reader.pending })
      })
      hub.on('close', (reader) => {
        const { reason, durationMs, cause } = reader
        const line = { event: 'sse_disconnect', ...connectionFields(reader), reason, duration_ms: durationMs }
        if (cause) say('error', { ...line, cause: causeText(cause) })
        else say('info', line)
      })
      hub.on('reject', (reader) => {
        const { channels, reason } = reader
        say('warn', { event: 'sse_reject', ...readerFields(reader), ...channelFields(channels), reason })
      })
      hub.on('silence', ({ silentMs, cause, local = false }) => {
        if (cause) logger.error({ event: 'log_lost', cause: causeText(cause) })
        else logger.error({ event: 'log_silent', silent_ms: Math.round(silentMs), local })
      })
      hub.on('local', ({ channel, type, id, bytes, subject }) => {
        logger.warn({
          event: 'publish_local',
          channel: plainText(channel),
          type: plainText(type),
          id,
          bytes,
          ...subjectField(subject),
        })
      })
      hub.on('healed', ({ channels }) => logger.warn({ event: 'log_healed', ...channelFields(channels) }))
      hub.on('error', ({ cause }) => logger.error({ event: 'request_failed', cause: causeText(cause) }))
      // Not even listened for otherwise: there are more of these than of anything else.
      if (logger.isLevelEnabled('debug')) {
        hub.on('publish', ({ channel, type, id, bytes, subject }) => {
          logger.debug({
            event: 'publish',
            channel: plainText(channel),
            type: plainText(type),
            id,
            bytes,
            ...subjectField(subject),
          })
        })
      }
    },

    reconnected({ attempt, delayMs, url, timestamp, ip, userAgent }) {
      say('info', {
        ...{ event: 'sse_reconnect', attempt, delay_ms: delayMs, url: plainText(url, 512) },
        ...{ timestamp: plainText(timestamp, 40), ...readerFields({ ip, userAgent, subject: null }) },
      })
    },
    administered({ action, target, ip }) {
      const on = target === undefined ? {} : { target: plainText(target) }
      logger.warn({ event: 'admin', action, ...on, client_ip: ip })
    },
    certificate({ cause }) {
      if (cause === undefined) logger.info({ event: 'tls_reloaded' })
      else logger.warn({ event: 'tls_reload_failed', cause: causeText(cause) })
    },
    warned: (message) => logger.warn({ event: 'server_warning' }, message),
    stopping(signal) {
      ration.flush()
      logger.info({ event: 'server_stopping', signal })
    },
    failed: (cause) => logger.fatal({ event: 'server_failed', cause: causeText(cause), ...stackField(cause) }),
  }
}

export interface JsonOutput {
  readonly fd?: number
  write(line: string): unknown
}

/** The least important lines that are still written. Publishes are `debug`, and so is a line for each of many readers. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const

export type LogLevel = (typeof logLevels)[number]

// A subscription may name 100 channels of 256 bytes each, and a reader in a loop would fill a disk with them.
const maxChannels = 10

function connectionFields(reader: ReaderObservation) {
  return { connection_id: reader.connection, ...channelFields(reader.channels), ...readerFields(reader) }
}

function returnFields(reader: HubObservations['replay'] | HubObservations['gap']) {
  return { ...connectionFields(reader), requested_id: idField(reader.requested) }
}

function channelFields(channels: readonly string[]) {
  const shown = channels.slice(0, maxChannels).map((name) => plainText(name))
  return channels.length <= maxChannels ? { channels: shown } : { channels: shown, channel_count: channels.length }
}

function readerFields({ ip, userAgent, subject }: ReaderFacts) {
  const agent = userAgent === null ? null : plainText(userAgent)
  return { client_ip: ip, user_agent: agent, ...subjectField(subject) }
}

function subjectField(subject: string | null) {
  return subject === null ? {} : { subject: plainText(subject) }
}

function idField(id: string | null): string | null {
  return id === null ? null : plainText(id, 128)
}

function stackField(cause: unknown) {
  return cause instanceof Error && cause.stack ? { stack: cause.stack.slice(0, 4000) } : {}
}
