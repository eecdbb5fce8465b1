import { pino } from 'pino'
import { type Announcer, insecureWarning } from './announcer.ts'

/** Announces to a program: one JSON object per line, with names in snake_case. */
export function jsonLines(output: JsonOutput): Announcer {
  // By its number, pino survives a reader that goes away (`npm start | head -1`), which ends a program that writes to
  // `process.stdout`.
  const destination =
    output.fd === undefined ? { write: (line: string) => void output.write(line) } : pino.destination(output.fd)
  const logger = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    destination,
  )

  return {
    ready({ version, url, log, folder, loopbackOnly }) {
      const { maxEvents, maxAgeMs, maxBytes } = log.window
      logger.info({
        event: 'server_ready',
        version,
        url,
        log: log.name,
        ...(folder === undefined ? {} : { folder }),
        max_events: maxEvents,
        max_age_ms: maxAgeMs,
        max_bytes: maxBytes,
        loopback_only: loopbackOnly,
      })
      if (!loopbackOnly) logger.warn({ event: 'server_insecure' }, insecureWarning)
    },

    watch(hub) {
      hub.on('connect', ({ connection, channels, requested }) => {
        logger.info({ event: 'sse_connect', connection_id: connection, channels, requested_id: requested })
      })
      hub.on('replay', ({ connection, channels, requested, replayed, elapsedMs }) => {
        logger.info({
          event: 'sse_replay',
          connection_id: connection,
          channels,
          requested_id: requested,
          replayed_count: replayed,
          elapsed_ms: elapsedMs,
        })
      })
      hub.on('gap', ({ connection, channels, requested, reason }) => {
        logger.warn({ event: 'sse_gap', connection_id: connection, channels, requested_id: requested, reason })
      })
      hub.on('window', ({ channel, absenceMs, has, needs }) => {
        logger.warn({
          event: 'window_small',
          channel,
          absence_ms: absenceMs,
          max_events: has.maxEvents,
          max_age_ms: has.maxAgeMs,
          needed_events: needs.maxEvents,
          needed_age_ms: needs.maxAgeMs,
        })
      })
      hub.on('close', ({ connection, channels, reason, durationMs, cause }) => {
        const line = { event: 'sse_close', connection_id: connection, channels, reason, duration_ms: durationMs }
        if (cause) logger.error({ ...line, cause: String(cause) })
        else logger.info(line)
      })
      hub.on('error', ({ cause }) => logger.error({ event: 'request_failed', cause: String(cause) }))
    },

    stopping: (signal) => logger.info({ event: 'server_stopping', signal }),
  }
}

export interface JsonOutput {
  readonly fd?: number
  write(line: string): unknown
}
