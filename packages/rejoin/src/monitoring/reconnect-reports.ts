import { createReports, type ReconnectReport } from '@rejoin/hub/operations'
import type { Route } from '../http/routes.ts'

/** `POST /log`, where `@rejoin/client` reports the connections that it lost. */
export function reconnectReportRoute(tell: (report: ReconnectReport) => void, now?: () => number): Route {
  const reports = createReports(tell, now)
  return {
    method: 'POST',
    path: '/log',
    open: 'to-all',
    async handle({ ip, userAgent, body }) {
      await reports.take({ ip, userAgent }, body)
      return { status: 204 }
    },
  }
}
