import { decodeCrockford, encode10, encode40, encode48 } from '../crockford.ts'
import { type IdCodec, maxMs48, rejectPosition } from './codec.ts'

/** Ids of 26 characters: 10 of `ms`, 8 of the epoch, 8 of `seq`. Within one branch, ids sort like their positions. */
export function ulid(): IdCodec {
  // 1,024 events of one millisecond share all but the last two characters of their ids, so these are rendered once.
  let shared = { ms: -1, epoch: '', thousand: -1, text: '' }
  return {
    name: 'ulid',
    clock: 'hybrid',
    maxSeq,
    mark: (branch) => branch.epoch,
    encode(position, branch) {
      if (!(position.ms <= maxMs48 && position.seq <= maxSeq)) rejectPosition('ulid', position)
      const { ms, seq } = position
      const { epoch } = branch
      const thousand = Math.floor(seq / 1024)
      if (shared.ms !== ms || shared.epoch !== epoch || shared.thousand !== thousand) {
        // `join` makes one flat string. With `+`, the engine would keep the pieces and put them together again for
        // every id.
        shared = { ms, epoch, thousand, text: [encode48(ms), epoch, encode40(seq).slice(0, 6)].join('') }
      }
      return shared.text + encode10(seq % 1024)
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
