/**
 * How safe an answered publish is, by the settings of Redis. CONFIG SET or a failover may change the settings while hubs run.
 * So the hub reads them after every append: an answer that says `disk` has to be true when it is given. An answer that says
 * `memory` is true with any settings. So a hub that answers `memory` and sends one call after the other reads the settings once
 * a second.
 */
export interface Flushing {
  readonly durability: Flushed
  /** Whether to read the settings after the next call. `inRush` is true when other calls are under way. */
  isDue(inRush: boolean): boolean
  /** Takes the answer to `flushingCommand`, undefined when the server rejected the command. */
  learn(reply: unknown): void
}

export type Flushed = 'memory' | 'os' | 'disk'

/** Sent after a call, which has up to 128 events. A client library takes some 20 µs for it. */
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
 * Assumes the weaker durability when the server does not say how it flushes. `everysec` counts as memory: while a flush is under
 * way, for up to two seconds, Redis keeps new writes in memory and answers all the same.
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
