import type { LogSource } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'
import type { Config } from '../config/config.ts'
import { logKindOf } from '../config/log-place.ts'

/** The log that the settings name. Each is loaded only where it is used: they are libraries, and cost a start some time. */
export async function logSourceOf(config: Config, onWarning: (message: string) => void): Promise<LogSource> {
  const { log, data, logPrefix: prefix, window, windows = {}, replicas } = config
  if (log === 'memory') return (await import('@rejoin/hub/memory')).memoryLog({ window, windows })
  if (log === 'lmdb') {
    const durability = oneOf(['disk', 'os'], config)
    return (await import('@rejoin/hub/lmdb')).lmdbLog(data, { window, windows, durability })
  }
  const durability = oneOf(['server', 'disk', 'replicated'], config)
  const [{ Redis }, { redisLog }] = await Promise.all([import('ioredis'), import('@rejoin/hub/redis')])
  // It is never connected itself: the log makes connections like it.
  return redisLog(new Redis(log, { lazyConnect: true }), {
    ...{ prefix, window, windows, durability, replicas, onWarning },
  })
}

/** Not every log can give every durability. */
function oneOf<Choice extends Config['durability']>(choices: readonly Choice[], { log, durability }: Config): Choice {
  const chosen = choices.find((choice) => choice === durability)
  if (chosen) return chosen
  throw new RejoinError(
    `The ${logKindOf(log)} log knows no durability ${durability}. Choose ${choices.join(' or ')}, or leave it out.`,
    { code: 'invalid-option' },
  )
}
