import { RejoinError } from '@rejoin/protocol'
import { invalidOption } from '../../invalid-option.ts'

/** What a server says about itself. */
export interface ServerFacts {
  /** Whether the server writes its commands to an append-only file. */
  readonly aof: boolean
  /** Whether the server knows WAITAOF, which came with Redis 7.2. */
  readonly waitAof: boolean
  /** How many replicas are connected to the server. */
  readonly replicas: number
}

/** Which server answers: its process, and the history of writes that the process continues. */
export interface ServerIdentity {
  /** `run_id`, which is new for every start of a process. */
  readonly run: string
  /** `master_replid`, which changes when the process copies its data from another server, or takes over as master. */
  readonly lineage: string
}

/** Rejects servers on which the log could not keep its promises, with advice. */
export const checkServer = {
  /** Returns the answer of INFO when the server is new enough. */
  version(info: unknown): string {
    const text = String(info)
    const version = /^redis_version:(.*?)\r?$/m.exec(text)?.[1] ?? 'unknown'
    if (Number.parseInt(version, 10) >= 7) return text
    throw invalidOption(`This Redis has version ${version}. The log needs 7.0 or later.`)
  },

  /** Without an identity, no hub can tell a server that was restarted or rolled back from a server that lost nothing. */
  identity(info: string): ServerIdentity {
    const [run, lineage] = [fieldOf(info, 'run_id'), fieldOf(info, 'master_replid')]
    if (run !== '' && lineage !== '') return { run, lineage }
    throw new RejoinError(
      `This Redis does not say which process answers: INFO has no ${run === '' ? 'run_id' : 'master_replid'}. ` +
        'A log on it could lose events without anybody noticing. Connect to Redis itself, without a proxy that hides it.',
      { code: 'invalid-option' },
    )
  },

  /** Every evicted key would be an announced gap. If the log's own state were evicted, the log would begin a new branch. */
  policy(policy: string): void {
    if (policy === 'noeviction') return
    throw new RejoinError(
      `Redis has maxmemory-policy ${policy} and would remove events when memory runs out. ` +
        'Run CONFIG SET maxmemory-policy noeviction, or give the log a Redis of its own.',
      { code: 'invalid-option' },
    )
  },
}

export const noAofWarning =
  'Redis has appendonly no: a restart loses every event. Readers will be notified, but set appendonly yes to keep them.'

export function replicasWarning(found: number, needed: number): string {
  return (
    `Redis has ${found} replicas, and durability replicated waits for ${needed}: publishes fail until there are as many. ` +
    'Set min-replicas-to-write, so that Redis rejects such events instead of keeping them.'
  )
}

export function fieldOf(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? ''
}

export function unavailable(reason: string, cause?: unknown): RejoinError {
  return new RejoinError(
    `Redis is unavailable: ${reason.replace(/\.+$/, '')}. The hub is retrying; retry your request.`,
    {
      code: 'log-unavailable',
      retryable: true,
      ...(cause === undefined ? {} : { cause }),
    },
  )
}
