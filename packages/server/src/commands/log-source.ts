import type { LogSource } from '@rejoin/hub'
import type { Config } from '../config/config.ts'

/** The log that the settings name. Each is loaded only where it is used: they are libraries, and cost a start some time. */
export async function logSourceOf(config: Config, onWarning: (message: string) => void): Promise<LogSource> {
  const { log, data, logPrefix: prefix, durability, window, windows = {} } = config
  if (log === 'memory') return (await import('@rejoin/hub/memory')).memoryLog({ window, windows })
  if (log === 'lmdb') return (await import('@rejoin/hub/lmdb')).lmdbLog(data, { window, windows, durability })
  const [{ Redis }, { redisLog }] = await Promise.all([import('ioredis'), import('@rejoin/hub/redis')])
  // It is never connected itself: the log makes connections like it.
  return redisLog(new Redis(log, { lazyConnect: true }), { prefix, window, windows, onWarning })
}
