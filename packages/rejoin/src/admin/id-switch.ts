import type { Hub, IdFormat } from '@rejoin/hub'
import type { Position } from '@rejoin/protocol'
import { invalidData } from '../errors.ts'
import { type IdFormatName, idCodecOf } from '../id-formats.ts'

/** A format of ids, as the admin API shows it. */
export interface ToldFormat {
  readonly format: string
  readonly version: number | null
  readonly since: Position | null
}

export interface ToldSwitch {
  readonly isNew: boolean
  readonly dryRun: boolean
  readonly before: ToldFormat
  readonly after: ToldFormat
}

export interface AskedSwitch {
  readonly format?: IdFormatName | undefined
  readonly version?: number | undefined
  readonly dryRun: boolean
}

export function idFormatsOf({ log }: Hub): ToldFormat[] {
  return log.formats.list.map(told)
}

export async function switchIds({ log }: Hub, { format, version, dryRun }: AskedSwitch): Promise<ToldSwitch> {
  const newest = log.formats.list.at(-1) as IdFormat
  if (format === undefined && version === undefined) {
    throw invalidData('Say what ids are to look like: a "format", a "version", or both.')
  }
  if (!log.switchIds) throw invalidData(`The log ${log.name} keeps the ids that it has.`)
  // The present codec may have settings of its own, which its name does not tell.
  const isSame = format === undefined || format === newest.codec.name
  const codec = isSame ? newest.codec : idCodecOf(format)
  const { isNew, before, after } = await log.switchIds({ codec, version }, { dryRun })
  return { isNew, dryRun, before: told(before), after: told(after) }
}

function told({ codec, version, since }: IdFormat): ToldFormat {
  return { format: codec.name, version: version ?? null, since: since ?? null }
}
