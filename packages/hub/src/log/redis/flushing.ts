/**
 * How safe an answered publish is by the settings of Redis. They may be changed while hubs run, by CONFIG SET or a failover, so
 * they are read behind every append: an answer that says `disk` has to be true when it is given.
 */
export interface Flushing {
  readonly durability: Flushed
  /** Takes the answer to `flushingCommand`; undefined where the server refused it. */
  learn(reply: unknown): void
}

export type Flushed = 'memory' | 'os' | 'disk'

/** Sent once behind each call, which has up to 128 events. */
export const flushingCommand = ['CONFIG', 'GET', 'appendonly', 'appendfsync'] as const

export function createFlushing(onWarning: (message: string) => void): Flushing {
  let durability: Flushed | undefined
  return {
    get durability() {
      return durability ?? 'memory'
    },
    learn(reply) {
      const before = durability
      durability = flushedBy(reply)
      if (before !== undefined && order.indexOf(durability) < order.indexOf(before)) {
        onWarning(
          `Redis flushes less than before: publishes are answered with durability ${durability}, no longer ${before}. ` +
            'Check appendonly and appendfsync of the server that answers now.',
        )
      }
    },
  }
}

const order: readonly Flushed[] = ['memory', 'os', 'disk']

/**
 * Where the server does not say how it flushes, the weaker is assumed. With `everysec` that is its memory: while a flush is
 * under way, for up to two seconds, Redis holds back what it writes and answers all the same.
 */
export function flushedBy(reply: unknown): Flushed {
  const settings = Array.isArray(reply) ? reply.map(String) : []
  const set = (name: string) => settings[settings.indexOf(name) + 1]
  if (settings.length === 0 || set('appendonly') !== 'yes') return 'memory'
  switch (set('appendfsync')) {
    case 'always':
      return 'disk'
    case 'no':
      return 'os'
    default:
      return 'memory'
  }
}
