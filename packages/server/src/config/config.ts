import type { LimitOptions, ReplayLimits, WindowOptions } from '@rejoin/hub'
import type { AccessRules } from '../access/rules.ts'
import type { RequestLimits } from '../limits/options.ts'
import type { TlsFiles } from '../tls/certificate.ts'
import type { LogPlace } from './log-place.ts'

/** What the program was told, and for the rest what holds then. `docs/reference/config.md` has a line for each key. */
export interface Config extends ReplayLimits {
  port: number
  host: string
  insecure: boolean
  trustProxy: boolean
  playground?: boolean
  logLevel: 'debug' | 'info' | 'warn' | 'error'
  drainMs: number
  log: LogPlace
  data: string
  logPrefix: string
  durability: 'memory' | 'os' | 'disk' | 'replicated' | 'server'
  replicas: number
  window: Required<WindowOptions>
  windows?: Readonly<Record<string, WindowOptions>>
  retain?: readonly string[]
  maxTailSilenceMs: number
  whenDown: 'refuse' | 'local'
  heartbeatMs: number
  retryMs: number | 'adaptive'
  retries?: Readonly<Record<string, number | 'adaptive'>>
  stallTimeoutMs: number
  hotBytes: number
  sinkBudgetBytes: number
  limits: LimitOptions & RequestLimits
  tls: Partial<TlsFiles> & { http2: boolean }
  access: AccessRules
  admin?: { token?: string; port?: number }
  metrics: boolean
}
