/**
 * How safe an answered publish is by the settings of Redis. They may be changed while hubs run, by CONFIG SET or a failover, so
 * they are read behind every append: an answer that says `disk` has to be true when it is given. An answer that says `memory`
 * is true whatever they are; so a hub in a rush, with one call behind the other, then reads them once a second.
 */
export interface Flushing {
  readonly durability: Flushed
  /** Whether they have to be read behind the next call; `inRush` when others are under way. */
  isDue(inRush: boolean): boolean
  /** Takes the answer to `flushingCommand`; undefined where the server rejected it. */
  learn(reply: unknown): void
}

export type Flushed = 'memory' | 'os' | 'disk'

/** Sent behind a call, which has up to 128 events. A client library takes some 20 µs for it. */
export const flushingCommand = ['CONFIG', 'GET', 'appendonly', 'appendfsync'] as const

export function createFlushing(onWarning: (message: string) => void): Flushing {
  let durability: Flushed | undefined
  let learntAt = Number.NEGATIVE_INFINITY
  return {
    isDue: (inRush) => !inRush || durability !== 'memory' || performance.now() - learntAt > rereadMs,
    get durability() {
      return durability ?? 'memory'
    },
    learn(reply) {
      learntAt = performance.now()
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

const rereadMs = 1000
const order: readonly Flushed[] = ['memory', 'os', 'disk']

/**
 * Where the server does not say how it flushes, the weaker is assumed. With `everysec` that is its memory: while a flush is
 * under way, for up to two seconds, Redis holds back what it writes and answers all the same.
 */
function flushedBy(reply: unknown): Flushed {
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
