export type { Logging, Readiness } from './logging/logging.ts'
export { type ServeOptions, type Serving, serve } from './serve.ts'
