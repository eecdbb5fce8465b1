import { type DecodedId, type IdCodec, maxMs48 } from './codecs/codec.ts'
import { hlc } from './codecs/hlc.ts'
import { sequence } from './codecs/sequence.ts'
import { snowflake } from './codecs/snowflake.ts'
import { ulid } from './codecs/ulid.ts'
import { uuidv7 } from './codecs/uuidv7.ts'
import { RejoinError } from './errors.ts'
import type { Branch } from './history.ts'
import { isIdText } from './id-text.ts'
import { comparePositions, isAfter, origin, type Position } from './position.ts'
import type { PositionClockRange } from './position-clock.ts'

/** How the ids of one log look, from one position on (§2.5). */
export interface IdFormat {
  readonly codec: IdCodec
  /**
   * A number from 1 to 999 that stands in front of every id as `v<n>_`. Needed to tell two settings of one codec apart.
   * @defaultValue none: ids have no prefix
   */
  readonly version?: number | undefined
  /**
   * The position from which this format is used, up to the `since` of the next format. Choose a position after the
   * head: an event that was already sent would otherwise get a second id, and no client could tell that it is the same
   * event.
   * @defaultValue the beginning of the log; only the first format of a list may leave it out
   */
  readonly since?: Position | undefined
}

export interface IdFormats {
  /** The formats as given, oldest first. New events get the last one. */
  readonly list: readonly IdFormat[]
  /** Uses the newest format whose `since` is not after this position, so that an event keeps its id for ever. */
  encode(position: Position, branch: Branch): string
  /** `version`: the text is an id, but of no format of this log. `unknown-id`: the text is no id. Never throws. */
  decode(text: string): (DecodedId & { readonly codec: IdCodec }) | 'version' | 'unknown-id'
  /** The range that the log's clock must keep to, so that every new position has an id. */
  readonly range: Required<PositionClockRange>
  /** Whether a format of the list needs a log that remembers its branches across restarts. */
  readonly lasting: boolean
}

/**
 * @param list - the formats of one log, oldest first. Keep an old format for as long as clients may return with its
 * ids: an id of a format that is not in the list is answered with a gap.
 */
export function createIdFormats(list: readonly IdFormat[]): IdFormats {
  checkList(list)
  const formats = list.map(({ codec, version, since = origin }) => ({ codec, since, prefix: prefixOf(version) }))
  const codecs = list.map((format) => format.codec)
  const newest = formats.at(-1)!

  return {
    list,
    encode(position, branch) {
      const holds = comparePositions(position, newest.since) >= 0
      const format = holds ? newest : (formats.findLast(({ since }) => !isAfter(since, position)) ?? formats[0]!)
      return format.prefix + format.codec.encode(position, branch)
    },

    decode(text) {
      const prefix = versionPrefix.exec(text)?.[0] ?? ''
      const body = text.slice(prefix.length)
      for (const { codec, prefix: own } of formats) {
        const decoded = own === prefix ? codec.decode(body) : undefined
        if (decoded) return { position: decoded.position, mark: decoded.mark, codec }
      }
      // Behind a version that this log does not have there may be an id of a newer codec, so any valid id text counts
      // as an id.
      const foreign =
        prefix !== '' && body !== '' && !formats.some((format) => format.prefix === prefix) && isIdText(text)
      return foreign || knownCodecs.some((codec) => codec.decode(body)) ? 'version' : 'unknown-id'
    },

    range: {
      kind: newest.codec.clock,
      maxSeq: Math.min(...codecs.map((codec) => codec.maxSeq)),
      minMs: Math.max(...codecs.map((codec) => codec.minMs ?? 0)),
      // Of the newest format alone: it names all new positions, and a log that has outlived its ids is switched to others.
      maxMs: newest.codec.maxMs ?? maxMs48,
    },
    lasting: codecs.some((codec) => codec.lasting === true),
  }
}

function checkList(list: readonly IdFormat[]): void {
  const [first] = list
  if (!first) reject('the list is empty; name at least one codec')
  const names = new Map<string, IdCodec>()
  for (const [at, { codec, version, since }] of list.entries()) {
    if (version !== undefined && !(Number.isInteger(version) && version >= 1 && version <= 999)) {
      reject(`version ${version} is not a whole number from 1 to 999`)
    }
    const name = prefixOf(version) + codec.name
    // The same codec object may stand in the list twice: its ids name the same positions.
    if ((names.get(name) ?? codec) !== codec) {
      reject(`two of them write ${name} ids, which nobody could tell apart; give one a version`)
    }
    names.set(name, codec)
    // All positions of a counter are before those of a hybrid clock, so a change of the clock could break the order of
    // the log.
    if (codec.clock !== first.codec.clock) {
      reject(`${codec.name} has a ${codec.clock} clock and ${first.codec.name} has not; a log keeps the clock it has`)
    }
    if (at > 0 && !(since && isAfter(since, list[at - 1]!.since ?? origin))) {
      reject(`number ${at + 1} does not say since when it holds, or not after the one before it; set since`)
    }
  }
}

function prefixOf(version: number | undefined): string {
  return version === undefined ? '' : `v${version}_`
}

function reject(reason: string): never {
  throw new RejoinError(`The log cannot use these id formats: ${reason}.`, { code: 'invalid-option' })
}

const versionPrefix = /^v[1-9][0-9]{0,2}_/

/**
 * These codecs only tell whether a text is an id. The positions that they decode mean nothing, because their settings
 * are the default ones.
 */
const knownCodecs = [ulid(), uuidv7(), snowflake(), sequence(), hlc()]
