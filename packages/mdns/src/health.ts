import type { Cancel } from '@rejoin/hub/internal'
import type { Timing } from './timing.ts'

/** Whether the source hears the network. */
export interface Health {
  /** False when services are looked for and no packet has arrived from the network for 90 s. */
  readonly healthy: boolean
  /** How long no packet has arrived while services are looked for; 0 while none are. */
  readonly silentMs: number
  /** The last error in sending or reading; null until one happens, and when a packet has arrived after it. */
  readonly failure: string | null
}

export interface HealthWatch {
  /** Says whether services are looked for from now on. */
  looking(isLooking: boolean): void
  heard(): void
  failed(cause: unknown): void
  now(): Health
  stop(): void
}

export interface HealthOptions {
  readonly timing: Timing
  /** Sends a query that every responder answers, so that a quiet network is not taken for a broken one. */
  probe(): void
  /** Called when `healthy` has changed. */
  onHealth(health: Health): void
}

/** Such a silence is no accident: responders were asked twice meanwhile. */
const unhealthyMs = 90_000
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
