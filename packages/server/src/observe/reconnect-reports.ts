import { RejoinError } from '@rejoin/protocol'
import type { ReconnectReport } from '../announce/announcer.ts'
import { type OperationDoc, refusalDoc } from './openapi.ts'
import type { Call, Route } from './routes.ts'

/**
 * `POST /log`, where `@rejoin/client` tells of the connections it lost. All of it is hearsay, from whoever likes to say it:
 * bounded in size and number, and used for nothing but lines and counts.
 */
export function reconnectReportRoute(
  tell: (report: ReconnectReport) => void,
  now: () => number = () => performance.now(),
): Route {
  const allow = createAllowance(now)
  return {
    ...{ method: 'POST', path: '/log', open: 'to-all', doc },
    async handle({ ip, userAgent, body }) {
      if (!allow(ip)) {
        throw new RejoinError('Too many reports. Send those of half a minute together, as @rejoin/client does.', {
          code: 'overloaded',
        })
      }
      for (const record of readRecords(await body())) tell({ ...record, ip, userAgent })
      return { status: 204 }
    },
  }
}

const minuteMs = 60_000
// A client reports every 30 s at most; one address may be a whole office.
const maxPerAddress = 60
// What an outage of many thousand clients is worth in lines. Also bounds the addresses that are remembered.
const maxInAll = 3000
const maxRecords = 100

/** Requests of a minute, counted by address and in all. */
function createAllowance(now: () => number): (ip: Call['ip']) => boolean {
  let since = now()
  let inAll = 0
  let byAddress = new Map<Call['ip'], number>()
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

type Told = Omit<ReconnectReport, 'ip' | 'userAgent'>

/** An array of records, or one record alone, which other clients may find easier. */
function readRecords(value: unknown): Told[] {
  const records = Array.isArray(value) ? value : [value]
  if (records.length > maxRecords) refuse(`there are ${records.length}, and ${maxRecords} are the most`)
  return records.map(readRecord)
}

function readRecord(value: unknown): Told {
  if (typeof value !== 'object' || value === null) refuse('one of them is not an object')
  const { event, attempt, delay_ms: delayMs, url, timestamp } = value as Record<string, unknown>
  if (event !== 'sse_reconnect') refuse('"event" has to be "sse_reconnect"')
  if (!isCount(attempt) || attempt < 1) refuse('"attempt" has to be a whole number from 1')
  if (!isCount(delayMs)) refuse('"delay_ms" has to be a whole number')
  if (typeof url !== 'string' || typeof timestamp !== 'string') refuse('"url" and "timestamp" have to be strings')
  return { attempt, delayMs, url: withoutSecrets(url), timestamp }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function refuse(why: string): never {
  throw new RejoinError(`These are no reports of reconnects: ${why}. GET /openapi.json says what they look like.`, {
    code: 'invalid-data',
  })
}

/** Our client leaves the query out; others may not, and some keep their tokens there, or before the host. */
function withoutSecrets(url: string): string {
  const bare = url.replace(/[?#].*$/s, '')
  return bare.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/]*@/i, '$1')
}

const record = {
  type: 'object',
  required: ['event', 'attempt', 'delay_ms', 'url', 'timestamp'],
  properties: {
    event: { const: 'sse_reconnect' },
    attempt: { type: 'integer', minimum: 1 },
    delay_ms: { type: 'integer', minimum: 0 },
    url: { type: 'string', description: 'Of the stream, without its query.' },
    timestamp: { type: 'string', format: 'date-time' },
  },
}

const doc: OperationDoc = {
  summary: 'Report connections that were lost, as `@rejoin/client` does with its option `reports`',
  body: { oneOf: [{ type: 'array', items: record, maxItems: maxRecords }, record] },
  answers: { 204: { description: 'Noted.' }, 400: refusalDoc, 413: refusalDoc, 429: refusalDoc },
}
