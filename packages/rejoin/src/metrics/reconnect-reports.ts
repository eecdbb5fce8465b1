import { maxRecords } from '@rejoin/hub/internal'
import { createReports, type ReconnectReport } from '@rejoin/hub/operations'
import { type OperationDoc, rejectionDoc } from '../http/openapi.ts'
import type { Route } from '../http/routes.ts'

/** `POST /log`, where `@rejoin/client` reports the connections that it lost. */
export function reconnectReportRoute(tell: (report: ReconnectReport) => void, now?: () => number): Route {
  const reports = createReports(tell, now)
  return {
    method: 'POST',
    path: '/log',
    open: 'to-all',
    doc,
    async handle({ ip, userAgent, body }) {
      await reports.take({ ip, userAgent }, body)
      return { status: 204 }
    },
  }
}

const amount = (description: string) => ({
  type: 'number',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description,
})
const text = (description: string) => ({ type: 'string', description })

const record = {
  type: 'object',
  properties: {
    event: { const: 'sse_reconnect' },
    attempt: amount('Which attempt it was since the client was last connected. Rounded to a whole number.'),
    delay_ms: amount('How long the client waited before this attempt. Rounded to whole milliseconds.'),
    url: text('The address of the stream, without its query.'),
    timestamp: text('When the connection was lost, in ISO 8601. Default: when the report arrived.'),
  },
  required: ['event', 'attempt', 'delay_ms'],
}

const doc: OperationDoc = {
  summary: 'Report lost connections. `@rejoin/client` does so with its option `reports`',
  body: { oneOf: [{ type: 'array', items: record, maxItems: maxRecords }, record] },
  answers: {
    204: { description: 'The hub has counted and logged the reports.' },
    400: rejectionDoc,
    413: rejectionDoc,
    429: rejectionDoc,
  },
}
