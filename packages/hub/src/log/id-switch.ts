import { createIdFormats, type IdFormat, type IdFormats, isSame, latest, origin, type Position } from '@rejoin/protocol'
import { invalidOption } from '../invalid-option.ts'
import type { IdSwitch, NewIdFormat } from './contract.ts'
import { idsOf, isKnownCodec } from './stored-formats.ts'

/** A switch of the ids that this log can make. */
export interface PlannedSwitch {
  /** False when the log writes its ids in this format already. */
  readonly isNew: boolean
  /** The log's formats, with the new format from a position on. */
  since(position: Position): IdFormats
  /** The answer to the caller of `switchIds`. */
  told(formats: IdFormats): IdSwitch
}

/**
 * Rejects a format that the log could not keep to, and says why.
 *
 * @param lasting - whether the log survives a restart
 */
export function planIdSwitch(
  formats: IdFormats,
  { codec, version }: NewIdFormat,
  { lasting }: { readonly lasting: boolean },
): PlannedSwitch {
  const newest = formats.list.at(-1) as IdFormat
  const { clock } = newest.codec
  if (codec.clock !== clock) {
    throw invalidOption(
      clock === 'counter'
        ? `This log counts its events, and ${codec.name} ids tell the time. Positions that were given out cannot get another clock: begin another log.`
        : `This log dates its events, and ${codec.name} ids count them. Positions that were given out cannot get another clock: begin another log.`,
    )
  }
  if (codec.lasting && !lasting)
    throw invalidOption(`${codec.name} ids need a log that survives restarts. Choose another format.`)
  if (!isKnownCodec(codec)) {
    throw invalidOption(
      `${codec.name} is a codec of your own. Other hubs, and the next start, would not know it: switch to one of Rejoin's.`,
    )
  }
  // Takes the codec object that wrote the same ids before, if there is one: formats are compared by their codec objects.
  const format = {
    codec: formats.list.find((other) => idsOf(other.codec) === idsOf(codec))?.codec ?? codec,
    version,
  }
  const isNew = format.codec !== newest.codec || version !== newest.version
  const since = (position: Position) => {
    const first = latest(position, newest.since ?? origin)
    // A format that ends where it begins has no ids, so it goes.
    const kept = formats.list.filter(({ since = origin }, index) => index === 0 || !isSame(since, first))
    return createIdFormats([...kept, { ...format, since: first }])
  }
  // Makes the list once to find out whether it is valid, before anything is written.
  if (isNew) since({ ms: Number.MAX_SAFE_INTEGER, seq: 0 })
  return {
    isNew,
    since,
    told: (after) => ({ isNew, before: newest, after: isNew ? { ...format, since: sinceOf(after) } : newest }),
  }

  function sinceOf(after: IdFormats): Position | undefined {
    return after === formats ? undefined : after.list.at(-1)?.since
  }
}

/** The first position that can follow another one: later events stand at it or after it. */
export function positionBehind({ ms, seq }: Position): Position {
  return { ms, seq: seq + 1 }
}
