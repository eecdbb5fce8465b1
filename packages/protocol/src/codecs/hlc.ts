import { RejoinError } from '../errors.ts'
import { decodeHex, hex32, hex48 } from '../hex.ts'
import type { Branch } from '../history.ts'
import { type IdCodec, maxMs48, rejectPosition } from './codec.ts'

export interface HlcOptions {
  /**
   * A name in every id, for people who read ids of several logs: 1 to 16 characters of `a` to `z` and `0` to `9`. The
   * name stands for the log and not for the machine: all hubs of one log must use the same name, or one event gets two
   * ids.
   * @defaultValue 'hub'
   */
  node?: string | undefined
}

/**
 * Ids like `<ms>-<seq>-<node>-<epoch>`, with `ms` and `seq` in hex. Within one branch, ids sort like their positions.
 */
export function hlc({ node = 'hub' }: HlcOptions = {}): IdCodec {
  if (!nodeName.test(node)) {
    throw new RejoinError(`hlc: node is ${JSON.stringify(node)}. Use 1 to 16 of the characters a to z and 0 to 9.`, {
      code: 'invalid-option',
    })
  }
  const mark = (branch: Branch) => `${node}-${branch.epoch.toLowerCase()}`

  return {
    name: 'hlc',
    clock: 'hybrid',
    maxSeq,
    mark,
    encode(position, branch) {
      if (!(position.ms <= maxMs48 && position.seq <= maxSeq)) rejectPosition('hlc', position)
      return `${hex48(position.ms)}-${hex32(position.seq)}-${mark(branch)}`
    },
    // An id of another node decodes too: it is a valid id, of a branch that this log does not have.
    decode(text) {
      if (!canonical.test(text)) return undefined
      return { position: { ms: decodeHex(text, 0, 12), seq: decodeHex(text, 13, 21) }, mark: text.slice(22) }
    },
  }
}

const maxSeq = 2 ** 32 - 1

const nodeName = /^[a-z0-9]{1,16}$/
const canonical = /^[0-9a-f]{12}-[0-9a-f]{8}-[a-z0-9]{1,16}-[0-9a-hjkmnp-tv-z]{8}$/
