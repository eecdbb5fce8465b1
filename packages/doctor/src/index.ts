export { type ExamineOptions, examine } from './doctor.ts'
export type { ProxyName } from './proxy-name.ts'
export { type Change, type Check, type CheckName, checkNames, type Remedy, type Report, type Server } from './report.ts'
