import { RejoinError } from '@rejoin/protocol'
import type { Config } from './config.ts'

const choices = { lmdb: ['disk', 'os'], redis: ['server', 'disk', 'replicated'] } as const

/** Not every log has every durability. Throws for a durability that this log does not have. */
export function durabilityOf<Kind extends keyof typeof choices>(
  kind: Kind,
  durability: Config['durability'],
): (typeof choices)[Kind][number] {
  const known: readonly (typeof choices)[Kind][number][] = choices[kind]
  const chosen = known.find((choice) => choice === durability)
  if (chosen) return chosen
  throw new RejoinError(
    `The ${kind} log knows no durability ${durability}. Choose ${known.join(' or ')}, or leave it out.`,
    { code: 'invalid-option' },
  )
}
