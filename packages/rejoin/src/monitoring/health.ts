import type { Hub, HubAdmin } from '@rejoin/hub'
import type { LogBudget } from '@rejoin/hub/log'
import type { Maintenance } from '@rejoin/hub/operations'
import type { Route } from '../http/routes.ts'

/** Whether load balancers should send readers and publishers to this hub now. */
export interface Readiness {
  /** Checks the log, unless it was checked within the last second. Never rejects. */
  check(): Promise<ReadinessReport>
  readonly isStopping: boolean
  /** From now on the hub is not ready: it closes its streams, and will end. */
  stopping(): void
}

export interface ReadinessReport {
  readonly ready: boolean
  /** The result of each check: `ok`, or what is wrong. */
  readonly checks: Readonly<Record<'log' | 'stopping' | 'maintenance', string>>
  /** The log's own error, when its check fails; absent when the check passes or the log does not answer. */
  readonly reason?: string
  /** How much of its budget the log uses; absent without a budget, and while the log fails. A log at its budget is ready, too. */
  readonly budget?: LogBudget
}

// Load balancers check every few seconds, and wait for about as long.
const timeoutMs = 2000
// A check writes to the disk, and everybody may ask for one, so its result is reused for this long.
const believedMs = 1000

/** A hub needs no warm-up: it listens once its tail is open, and reads events that are not in its memory from the log. */
export function createReadiness({ hub, maintenance, now = () => performance.now() }: ReadinessOptions): Readiness {
  let stopping = false
  let probed: Promise<LogCheck> | undefined
  let probedAt = 0

  function logCheck(): Promise<LogCheck> {
    if (!probed || now() - probedAt >= believedMs) {
      probedAt = now()
      probed = checkLog(hub)
    }
    return probed
  }

  return {
    async check() {
      const { log, ...more } = await logCheck()
      const checks = {
        log,
        stopping: stopping ? 'its readers are being let go' : 'ok',
        maintenance: maintenance.isOn ? 'readers are rejected' : 'ok',
      }
      return { ready: Object.values(checks).every((check) => check === 'ok'), checks, ...more }
    },
    get isStopping() {
      return stopping
    },
    stopping() {
      stopping = true
    },
  }
}

export interface ReadinessOptions {
  readonly hub: Probed
  readonly maintenance: Pick<Maintenance, 'isOn'>
  /** A clock in milliseconds that never steps back. */
  now?(): number
}

interface Probed {
  readonly admin: Pick<HubAdmin, 'probe'>
  readonly log: Pick<Hub['log'], 'budget'>
}

interface LogCheck {
  readonly log: string
  readonly reason?: string
  readonly budget?: LogBudget
}

async function checkLog(hub: Probed): Promise<LogCheck> {
  const found = await probe(hub)
  // A log that cannot be asked fails its probe already.
  const budget = found.log === 'ok' ? await hub.log.budget?.().catch(() => undefined) : undefined
  return { ...found, ...(budget && { budget }) }
}

function probe({ admin }: Probed): Promise<LogCheck> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve({ log: `it has not answered within ${timeoutMs} ms` }), timeoutMs)
    void admin
      .probe()
      .then(
        () => resolve({ log: 'ok' }),
        ({ message }: Error) => resolve({ log: 'the log cannot store or deliver events', reason: message }),
      )
      .finally(() => clearTimeout(timer))
  })
}

/** The routes for load balancers and supervisors. */
export function healthRoutes(readiness: Readiness, version: string): Route[] {
  return [
    {
      method: 'GET',
      path: '/healthz',
      open: 'to-all',
      handle: () => ({ status: 200, body: { status: 'ok', version } }),
    },
    {
      method: 'GET',
      path: '/readyz',
      open: 'to-all',
      async handle({ isAdmin }) {
        const { ready, checks, reason, budget } = await readiness.check()
        // For admins only, because the reason can name a folder or the address of a Redis.
        const told = isAdmin && reason !== undefined ? { ...checks, log: reason } : checks
        const body = { status: ready ? 'ready' : 'not-ready', checks: told, ...(budget && { budget }) }
        return { status: ready ? 200 : 503, body }
      },
    },
  ]
}
