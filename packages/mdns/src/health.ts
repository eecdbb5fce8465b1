import type { Cancel } from '@rejoin/hub'
import type { Timing } from './timing.ts'

/** Whether anything is heard of the network. */
export interface Health {
  /** False when services are looked for and nothing at all has come from the network for `silentMs`. */
  readonly healthy: boolean
  /** For how long nothing was heard although services are looked for; 0 while none are. */
  readonly silentMs: number
  /** What could not be sent or read last; null when all went well. */
  readonly failure: string | null
}

export interface HealthWatch {
  /** Services are looked for from now on, or no longer. */
  looking(isLooking: boolean): void
  heard(): void
  failed(cause: unknown): void
  now(): Health
  stop(): void
}

export interface HealthOptions {
  readonly timing: Timing
  /** Asks something that any responder answers, so that a quiet network is not taken for a broken one. */
  probe(): void
  /** Told when the health has changed. */
  onHealth(health: Health): void
}

/** So long a silence is no chance: responders were asked twice meanwhile. */
export const unhealthyMs = 90_000
const probeAfterMs = 45_000
const checkEveryMs = 5000

export function createHealthWatch({ timing, probe, onHealth }: HealthOptions): HealthWatch {
  let since: number | undefined
  let probedAt = 0
  let wasHealthy = true
  let failure: string | null = null
  let cancel: Cancel = () => undefined

  function now(): Health {
    const silentMs = since === undefined ? 0 : Math.round(timing.now() - since)
    return { healthy: silentMs < unhealthyMs, silentMs, failure }
  }

  function check(): void {
    const health = now()
    if (health.silentMs >= probeAfterMs && timing.now() - probedAt >= probeAfterMs / 2) {
      probedAt = timing.now()
      probe()
    }
    tellChange(health)
    cancel = timing.after(checkEveryMs, check)
  }

  function tellChange(health: Health): void {
    if (health.healthy === wasHealthy) return
    wasHealthy = health.healthy
    onHealth(health)
  }

  return {
    looking(isLooking) {
      cancel()
      since = isLooking ? (since ?? timing.now()) : undefined
      if (isLooking) cancel = timing.after(checkEveryMs, check)
      tellChange(now())
    },
    heard() {
      if (since === undefined) return
      since = timing.now()
      failure = null
      tellChange(now())
    },
    failed(cause) {
      failure = cause instanceof Error ? cause.message : String(cause)
    },
    now,
    stop: () => cancel(),
  }
}
