export type { Announcer, Readiness } from './announce/announcer.ts'
export { type ServeOptions, type Serving, serve } from './serve.ts'
