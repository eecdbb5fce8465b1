import type { IncomingMessage } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import type { Answer } from '../http/answer.ts'
import type { Hub } from '../hub/hub.ts'
import { clientAddress, type ProxyTrust } from './client-address.ts'
import { type OperationHandler, operationHandler } from './handler.ts'
import { readJson } from './json-body.ts'

/** One reconnect, as `@rejoin/client` reports it. A client can invent everything but its `ip`. */
export interface ReconnectReport {
  readonly attempt: number
  readonly delayMs: number
  /** The URL of the stream, without its query. Null when the report names none. */
  readonly url: string | null
  /** When the connection was lost, as the client wrote it (ISO 8601); else when the report arrived. */
  readonly timestamp: string
  readonly ip: string | null
  readonly userAgent: string | null
}

/** The sender of a report. */
export type ReportSender = Pick<ReconnectReport, 'ip' | 'userAgent'>

/**
 * Receives the reports of `@rejoin/client` (its option `reports`): `app.post('/log', reportsHandler(hub, lines.reconnected))`.
 * The body may already be parsed by `express.json()`.
 */
export function reportsHandler(
  hub: Hub,
  tell: (report: ReconnectReport) => void,
  options: ProxyTrust = {},
): OperationHandler {
  const reports = createReports(tell)
  return operationHandler(hub, ['POST'], async (request) => {
    const sender = { ip: clientAddress(request, options), userAgent: request.headers['user-agent'] ?? null }
    await reports.take(sender, () => bodyOf(request))
    return noted
  })
}

/**
 * Like `reportsHandler`, for any framework. Anybody can send reports and invent their content. So they are bounded in size and
 * number; use them for log lines and counts only.
 */
export function createReports(
  tell: (report: ReconnectReport) => void,
  now: () => number = () => performance.now(),
): ReconnectReports {
  const allow = createAllowance(now)
  return {
    async take(sender, body) {
      if (!allow(sender.ip)) {
        throw new RejoinError('Too many reports. Send those of half a minute together, as @rejoin/client does.', {
          code: 'rate-limited',
        })
      }
      for (const record of readRecords(await body())) tell({ ...record, ip: sender.ip, userAgent: sender.userAgent })
    },
  }
}

export interface ReconnectReports {
  /**
   * Tells of each report in a body. `body` is not called for a sender over its limit. Rejects with `rate-limited` or
   * `invalid-data`.
   */
  take(sender: ReportSender, body: () => unknown): Promise<void>
}

const noted: Answer = { status: 204, headers: { 'Cache-Control': 'no-store' }, body: '' }

/** A client reports at most a hundred reconnects at once, of about 200 bytes each. */
export const maxReportBytes = 64 * 1024

const minuteMs = 60_000
// Requests per minute. A client sends one every 30 s at most, and one address may be a whole office.
const maxPerAddress = 60
// Requests per minute from all addresses. An outage of many thousand clients needs no more lines. Also bounds `byAddress`.
const maxInAll = 3000
export const maxRecords = 100

async function bodyOf(request: IncomingMessage & { readonly body?: unknown }): Promise<unknown> {
  return request.body ?? readJson(request, maxReportBytes)
}

/** Counts the requests of a minute, by address and in all. */
function createAllowance(now: () => number): (ip: string | null) => boolean {
  let since = now()
  let inAll = 0
  let byAddress = new Map<string | null, number>()
  return (ip) => {
    if (now() - since >= minuteMs) {
      since = now()
      inAll = 0
      byAddress = new Map()
    }
    const ofAddress = byAddress.get(ip) ?? 0
    if (inAll >= maxInAll || ofAddress >= maxPerAddress) return false
    inAll += 1
    byAddress.set(ip, ofAddress + 1)
    return true
  }
}

type Told = Omit<ReconnectReport, keyof ReportSender>

/** Takes a list of records, or a single record, which is easier for other clients. */
function readRecords(value: unknown): Told[] {
  const records = Array.isArray(value) ? value : [value]
  if (records.length > maxRecords) throw invalid(`Send at most ${maxRecords} reports at once.`)
  return records.map(readRecord)
}

function readRecord(value: unknown): Told {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid('The body has to be an object, or a list of objects. GET /openapi.json says what they look like.')
  }
  const { event, attempt, delay_ms: delayMs, url, timestamp } = value as Readonly<Record<string, unknown>>
  if (event !== 'sse_reconnect') throw invalid('"event" has to be "sse_reconnect".')
  return {
    attempt: amountOf('attempt', attempt),
    delayMs: amountOf('delay_ms', delayMs),
    url: withoutSecrets(textOf('url', url)),
    timestamp: textOf('timestamp', timestamp) ?? new Date().toISOString(),
  }
}

function amountOf(name: string, value: unknown): number {
  if (value === undefined) throw invalid(`"${name}" is missing.`)
  if (typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER) return Math.round(value)
  throw invalid(`"${name}" has to be a number from 0.`)
}

function textOf(name: string, value: unknown): string | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string') return value
  throw invalid(`"${name}" has to be a string.`)
}

/** Removes the query and the user info of a URL, where clients other than ours may have put a token. */
function withoutSecrets(url: string | null): string | null {
  const bare = url?.replace(/[?#].*$/s, '')
  return bare?.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1') ?? null
}

function invalid(message: string): RejoinError {
  return new RejoinError(message, { code: 'invalid-data' })
}
