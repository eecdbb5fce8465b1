import { decodeCrockford, encode40 } from '../crockford.ts'
import { decodeHex, hex16, hex32, hex48 } from '../hex.ts'
import { type IdCodec, maxMs48, rejectPosition } from './codec.ts'

/**
 * UUIDs of RFC 9562, version 7. Of the 74 free bits, the first 40 are the epoch and the other 34 are `seq`. Within one
 * branch, ids sort like their positions.
 */
export function uuidv7(): IdCodec {
  return {
    name: 'uuidv7',
    clock: 'hybrid',
    maxSeq,
    mark: (branch) => branch.epoch,
    encode(position, branch) {
      const { ms, seq } = position
      if (!(ms <= maxMs48 && seq <= maxSeq)) rejectPosition('uuidv7', position)
      const epoch = decodeCrockford(branch.epoch, 0, 8)
      const time = `${hex32(Math.floor(ms / 2 ** 16))}-${hex16(ms & 0xffff)}`
      const versionAndEpoch = hex16(0x7000 | Math.floor(epoch / 2 ** 28))
      const variantAndEpoch = hex16(0x8000 | (Math.floor(epoch / 2 ** 14) & 0x3fff))
      return `${time}-${versionAndEpoch}-${variantAndEpoch}-${hex48((epoch & 0x3fff) * 2 ** 34 + seq)}`
    },
    decode(text) {
      if (!canonical.test(text)) return undefined
      const tail = decodeHex(text, 24, 36)
      const epochTail = Math.floor(tail / 2 ** 34)
      const epoch = decodeHex(text, 15, 18) * 2 ** 28 + (decodeHex(text, 19, 23) & 0x3fff) * 2 ** 14 + epochTail
      return {
        position: { ms: decodeHex(text, 0, 8) * 2 ** 16 + decodeHex(text, 9, 13), seq: tail - epochTail * 2 ** 34 },
        mark: encode40(epoch),
      }
    },
  }
}

const maxSeq = 2 ** 34 - 1

const canonical = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
