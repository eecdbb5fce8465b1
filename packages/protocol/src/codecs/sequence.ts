import { type IdCodec, rejectPosition } from './codec.ts'

/** Ids like `evt-42-k3x9m2pq`: a counter, then the epoch. They are short and readable, and say nothing about time. */
export function sequence(): IdCodec {
  return {
    name: 'sequence',
    clock: 'counter',
    maxSeq: Number.MAX_SAFE_INTEGER,
    mark,
    encode(position, branch) {
      if (!(position.ms === 0 && position.seq <= Number.MAX_SAFE_INTEGER)) rejectPosition('sequence', position)
      return `evt-${position.seq}-${mark(branch)}`
    },
    decode(text) {
      if (!canonical.test(text)) return undefined
      const seq = Number(text.slice(4, -9))
      return seq <= Number.MAX_SAFE_INTEGER ? { position: { ms: 0, seq }, mark: text.slice(-8) } : undefined
    },
  }
}

function mark({ epoch }: { readonly epoch: string }): string {
  return epoch.toLowerCase()
}

// 2^53 - 1 has 16 digits.
const canonical = /^evt-(?:0|[1-9][0-9]{0,15})-[0-9a-hjkmnp-tv-z]{8}$/
