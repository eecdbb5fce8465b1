import type { LogSource } from '@rejoin/hub'
import type { Config } from '../../config/config.ts'
import { durabilityOf } from '../../config/durability.ts'
import { logOptionsOf } from '../../config/hub-options.ts'

/** The log that the settings name. Its library is loaded on demand, because loading takes time. */
export async function logSourceOf(config: Config, onWarning: (message: string) => void): Promise<LogSource> {
  const { log, data, lockTimeoutMs, logPrefix: prefix, replicas } = config
  const common = logOptionsOf(config)
  if (log === 'memory') return (await import('@rejoin/hub/memory')).memoryLog(common)
  if (log === 'lmdb') {
    const durability = durabilityOf('lmdb', config.durability)
    return (await import('@rejoin/hub/lmdb')).lmdbLog(data, { ...common, durability, lockTimeoutMs, onWarning })
  }
  const durability = durabilityOf('redis', config.durability)
  const [{ Redis }, { redisLog }] = await Promise.all([import('ioredis'), import('@rejoin/hub/redis')])
  // This client never connects: the log opens its own connections with the same options.
  return redisLog(new Redis(log, { lazyConnect: true }), { ...common, prefix, durability, replicas, onWarning })
}
