import type { Hub } from '@rejoin/hub'
import type { Maintenance } from './maintenance.ts'
import type { Publishes } from './publishes.ts'

/** Whether this hub should be sent readers and events now. */
export interface Readiness {
  /** Asks the log, and looks at what is known. Never rejects. */
  check(): Promise<ReadinessReport>
  /** From now on it is not ready: it lets its readers go and will end. */
  stopping(): void
}

export interface ReadinessReport {
  readonly ready: boolean
  /** By what was looked at: `ok`, or what is wrong with it. */
  readonly checks: Readonly<Record<ReadinessCheck, string>>
}

export type ReadinessCheck = 'append' | 'read' | 'stopping' | 'maintenance'

// Load balancers ask every few seconds and wait for about as long.
const readTimeoutMs = 2000

/**
 * Nothing is written to find out whether the log takes events: an event of ours would be in the user's log, and a hub that
 * was asked every second would fill it. The publishes themselves are the evidence, each of which waits until it is durable
 * and has come back through the tail; the read of a window shows that the log answers at all. There is nothing to warm up:
 * a hub listens once its tail is open, and what is not in its memory is read from the log.
 */
export function createReadiness({ hub, publishes, maintenance }: ReadinessOptions): Readiness {
  let stopping = false
  return {
    async check() {
      const checks = {
        append: publishes.trouble() ?? 'ok',
        read: await readTrouble(hub),
        stopping: stopping ? 'its readers are being let go' : 'ok',
        maintenance: maintenance.isOn ? 'readers are turned away' : 'ok',
      }
      return { ready: Object.values(checks).every((check) => check === 'ok'), checks }
    },
    stopping() {
      stopping = true
    },
  }
}

export interface ReadinessOptions {
  readonly hub: Pick<Hub, 'window'>
  readonly publishes: Pick<Publishes, 'trouble'>
  readonly maintenance: Pick<Maintenance, 'isOn'>
}

/** The window of a channel that nobody uses: asked for as any other, and empty. */
const probed = 'rejoin/readiness'

function readTrouble(hub: Pick<Hub, 'window'>): Promise<string> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(`the log has not answered within ${readTimeoutMs} ms`), readTimeoutMs)
    void hub
      .window(probed)
      .then(
        () => resolve('ok'),
        () => resolve('the log cannot be read'),
      )
      .finally(() => clearTimeout(timer))
  })
}
