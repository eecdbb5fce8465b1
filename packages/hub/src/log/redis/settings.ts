import type { IdCodec } from '@rejoin/protocol'
import { invalidOption } from '../../invalid-option.ts'
import { type Complete, withDefaults } from '../../with-defaults.ts'
import type { WindowOptions } from '../contract.ts'
import { type KeyLimits, keyLimits } from '../idempotency.ts'
import { budgetOf, createWindows, type Windows, windowOf } from '../window.ts'
import type { FeedOptions, RedisLogOptions } from './options.ts'

/** The options of a log, checked, with their defaults. */
export interface RedisSettings {
  readonly prefix: string
  readonly clock: 'redis' | 'hub'
  readonly codec: IdCodec | undefined
  readonly durability: 'server' | 'disk' | 'replicated'
  readonly replicas: number
  readonly answerWithinMs: number
  readonly window: Complete<WindowOptions>
  readonly windows: Windows
  readonly feed: Complete<FeedOptions>
  readonly idempotency: KeyLimits
  readonly forgetAfterMs: number
  readonly maxBytes: number | undefined
  readonly warn: (message: string) => void
}

export function settingsOf(options: RedisLogOptions): RedisSettings {
  const { prefix = 'rejoin', clock = 'redis', codec, durability = 'server', replicas = 1 } = options
  if (!/^[^{}\s]+$/.test(prefix))
    throw invalidOption(`prefix is ${JSON.stringify(prefix)}. Use a name without braces and spaces.`)
  if (clock !== 'redis' && clock !== 'hub')
    throw invalidOption(`clock is ${JSON.stringify(clock)}. Choose 'redis' or 'hub'.`)
  if (!['server', 'disk', 'replicated'].includes(durability)) {
    throw invalidOption(`durability is ${JSON.stringify(durability)}. Choose 'server', 'disk' or 'replicated'.`)
  }
  const feed = withDefaults(options.feed, { maxAgeMs: 300_000, maxBytes: 256 * 1024 * 1024 })
  const answerWithinMs = options.answerWithinMs ?? 5000
  for (const [name, value] of Object.entries({ ...feed, answerWithinMs, replicas })) {
    if (!(value >= 1)) throw invalidOption(`${name} is ${value}. Give a number of 1 or more, or leave it out.`)
  }
  const window = windowOf(options.window, { maxEvents: 1000, maxAgeMs: 3_600_000, maxBytes: 16 * 1024 * 1024 })
  return {
    prefix,
    clock,
    codec,
    durability,
    replicas,
    answerWithinMs,
    window,
    windows: createWindows(window, options.windows),
    feed,
    idempotency: keyLimits(options.idempotency),
    forgetAfterMs: options.forgetAfterMs ?? 30 * 24 * 3_600_000,
    maxBytes: budgetOf(options.maxBytes),
    warn: options.onWarning ?? ((message) => process.emitWarning(message)),
  }
}
