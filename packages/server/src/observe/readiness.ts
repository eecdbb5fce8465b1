import type { Hub } from '@rejoin/hub'
import type { Maintenance } from './maintenance.ts'

/** Whether this hub should be sent readers and events now. */
export interface Readiness {
  /** Asks the log, unless it has just been asked. Never rejects. */
  check(): Promise<ReadinessReport>
  /** From now on it is not ready: it lets its readers go and will end. */
  stopping(): void
}

export interface ReadinessReport {
  readonly ready: boolean
  /** By what was looked at: `ok`, or what is wrong with it. */
  readonly checks: Readonly<Record<'log' | 'stopping' | 'maintenance', string>>
}

// Load balancers ask every few seconds and wait for about as long.
const timeoutMs = 2000
// The proof is a write to the disk, and everybody may ask for it.
const believedMs = 1000

/** There is nothing to warm up: a hub listens once its tail is open, and what is not in its memory is read from the log. */
export function createReadiness({ hub, maintenance, now = () => performance.now() }: ReadinessOptions): Readiness {
  let stopping = false
  let probed: Promise<string> | undefined
  let probedAt = 0

  function logCheck(): Promise<string> {
    if (!probed || now() - probedAt >= believedMs) {
      probedAt = now()
      probed = probe(hub)
    }
    return probed
  }

  return {
    async check() {
      const checks = {
        log: await logCheck(),
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
  readonly hub: Pick<Hub, 'probe'>
  readonly maintenance: Pick<Maintenance, 'isOn'>
  /** Milliseconds on a clock that only goes forward. */
  now?(): number
}

/** Why is for the operator's lines, which say it to each publisher and reader; here it would be told to everybody. */
function probe(hub: Pick<Hub, 'probe'>): Promise<string> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(`it has not answered within ${timeoutMs} ms`), timeoutMs)
    void hub
      .probe()
      .then(
        () => resolve('ok'),
        () => resolve('it cannot take events and hand them out'),
      )
      .finally(() => clearTimeout(timer))
  })
}
