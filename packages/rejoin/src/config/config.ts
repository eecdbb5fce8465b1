import type { LimitOptions, WindowOptions } from '@rejoin/hub'
import type { ReplayLimits } from '@rejoin/hub/internal'
import type { Log } from '@rejoin/hub/log'
import type { AccessRules } from '../access/rules.ts'
import type { TlsFiles } from '../http/certificate.ts'
import type { IdFormatName } from '../id-formats.ts'
import type { RequestLimits } from '../limits/options.ts'
import type { MdnsSettings } from '../mdns.ts'
import type { SnapshotRule } from '../snapshots.ts'
import type { LogLocation } from './log-location.ts'

/** All settings, with the defaults of those that were left out. `docs/reference/config.md` has a line for each key. */
export interface Config extends ReplayLimits {
  port: number
  host: string
  insecure: boolean
  trustProxy: boolean
  playground?: boolean
  chaos: boolean
  logLevel: 'debug' | 'info' | 'warn' | 'error'
  drainMs: number
  log: LogLocation
  data: string
  lockTimeoutMs: number
  logPrefix: string
  logMaxBytes?: number
  durability: 'memory' | 'os' | 'disk' | 'replicated' | 'server'
  replicas: number
  ids?: IdFormatName
  window: Log['window']
  windows?: Readonly<Record<string, WindowOptions>>
  retain?: readonly string[]
  fromStart?: readonly string[]
  maxTailSilenceMs: number
  whenDown: 'reject' | 'local'
  heartbeatMs: number
  defaultChannel?: string
  retryMs: number | 'adaptive'
  retries?: Readonly<Record<string, number | 'adaptive'>>
  snapshots?: Readonly<Record<string, SnapshotRule>>
  stallTimeoutMs: number
  hotBytes: number
  sinkBudgetBytes: number
  limits: LimitOptions & RequestLimits
  tls: Partial<TlsFiles> & { http2: boolean }
  access: AccessRules
  admin?: { token?: string; port?: number }
  metrics: boolean
  mdns: MdnsSettings & { enabled: boolean }
}
