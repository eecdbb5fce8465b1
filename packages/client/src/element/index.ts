export type { StatusWords } from '../bindings/status.ts'
export { RejoinStatus } from './rejoin-status.ts'
