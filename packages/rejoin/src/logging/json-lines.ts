import { causeText, plainText } from '@rejoin/hub/internal'
import { createLogLines, type LogLevel } from '@rejoin/hub/operations'
import { pino } from 'pino'
import { insecureWarning, type Logging } from './logging.ts'

/** Lines for a program: one JSON object per line, with fields in snake_case. docs/guides/observe.md lists the fields. */
export function jsonLines(output: JsonOutput, level: LogLevel = 'info'): Logging {
  // With the number of the descriptor, pino survives a reader that goes away (`npm start | head -1`). A program that writes to
  // `process.stdout` would end.
  const destination =
    output.fd === undefined ? { write: (line: string) => void output.write(line) } : pino.destination(output.fd)
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (name) => ({ level: name }) } },
    destination,
  )
  const lines = createLogLines(({ level, ...fields }) => logger[level](fields), { level })

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

    watch: lines.watch,
    rejected: lines.rejected,
    reconnected: lines.reconnected,
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
      lines.flush()
      logger.info({ event: 'server_stopping', signal })
    },
    failed(cause) {
      lines.flush()
      logger.fatal({ event: 'server_failed', cause: causeText(cause), ...stackField(cause) })
    },
    ended: lines.flush,
  }
}

export interface JsonOutput {
  readonly fd?: number
  write(line: string): unknown
}

function stackField(cause: unknown) {
  return cause instanceof Error && cause.stack ? { stack: cause.stack.slice(0, 4000) } : {}
}
