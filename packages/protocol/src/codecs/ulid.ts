import { decodeCrockford, encode40, encode48 } from '../crockford.ts'
import { type IdCodec, maxMs48, refusePosition } from './codec.ts'

/** 26 characters: 10 of `ms`, 8 of the epoch, 8 of `seq`. Within one branch the text sorts as the positions do. */
export function ulid(): IdCodec {
  return {
    name: 'ulid',
    clock: 'hybrid',
    maxSeq,
    mark: (branch) => branch.epoch,
    encode(position, branch) {
      if (!(position.ms <= maxMs48 && position.seq <= maxSeq)) refusePosition('ulid', position)
      return encode48(position.ms) + branch.epoch + encode40(position.seq)
    },
    decode(text) {
      if (!canonical.test(text)) return undefined
      return {
        position: { ms: decodeCrockford(text, 0, 10), seq: decodeCrockford(text, 18, 26) },
        mark: text.slice(10, 18),
      }
    },
  }
}

const maxSeq = 2 ** 40 - 1

// A first character past 7 would be a 49th bit of `ms`.
const canonical = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
