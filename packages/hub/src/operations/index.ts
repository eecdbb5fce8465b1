export type { ProxyTrust } from './client-address.ts'
export type { OperationHandler } from './handler.ts'
export {
  createLogLines,
  type LogLevel,
  type LogLine,
  type LogLines,
  type LogLinesOptions,
  type RejectedRequest,
} from './log-lines.ts'
export {
  createMaintenance,
  type Maintenance,
  type MaintenanceOptions,
  type MaintenanceTimes,
} from './maintenance.ts'
export {
  createReports,
  type ReconnectReport,
  type ReconnectReports,
  type ReportSender,
  reportsHandler,
} from './reconnect-reports.ts'
export { type SseState, sseState, sseStateHandler } from './sse-state.ts'
