import { plainText } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import { Argument, type Command } from 'commander'
import * as v from 'valibot'
import type { ToldFormat, ToldSwitch } from '../../admin/id-switch.ts'
import { idFormatNames } from '../../id-formats.ts'
import { table } from '../../logging/table.ts'
import { createOutput } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { adminCall } from './admin-call.ts'
import { type AddressFlags, addAddressFlags, adminAddress } from './hub-address.ts'

export function addMigrate(program: Command, host: ProgramHost): void {
  const migrate = program.command('migrate').description('change how a log is kept, while its hubs run')
  const ids = migrate
    .command('ids')
    .description('show the id formats of a log, or change the format of new ids on all its hubs')
    .addArgument(
      new Argument('[format]', 'format of new ids; without it and --id-version, show the formats').choices(
        idFormatNames,
      ),
    )
    .option('--id-version <number>', 'version in front of every new id: 2 makes v2_…')
    .option('--dry-run', 'print the change, and do not make it')
    .option('--json', 'print a JSON object')
  addAddressFlags(ids, 'REJOIN_ADMIN_TOKEN').action((format: string | undefined) => runIds(format, ids.opts(), host))
}

interface IdsFlags extends AddressFlags {
  readonly idVersion?: string
  readonly dryRun?: true
  readonly json?: true
}

async function runIds(format: string | undefined, flags: IdsFlags, host: ProgramHost): Promise<void> {
  const version = flags.idVersion === undefined ? undefined : readVersion(flags.idVersion)
  const address = await adminAddress(flags, host)
  const output = createOutput(host)
  if (format === undefined && version === undefined) {
    const found = await adminCall(address, host, '/admin/ids', listedFormats)
    if (flags.json) return output.line(JSON.stringify(found))
    for (const line of table([['ids', 'since'], ...found.formats.map(rowOf)])) await output.line(line)
    return
  }
  const asked = { format, version, dryRun: flags.dryRun === true }
  const told = await adminCall(address, host, '/admin/ids', toldSwitch, asked)
  if (flags.json) return output.line(JSON.stringify(told))
  for (const line of linesOf(told)) await output.line(line)
}

// A date has no later time than this one.
const maxMs = 8.64e15
const position = v.looseObject({ ms: v.pipe(v.number(), v.minValue(0), v.maxValue(maxMs)), seq: v.number() })
const toldFormat = v.looseObject({ format: v.string(), version: v.nullable(v.number()), since: v.nullable(position) })
const listedFormats = v.looseObject({ formats: v.array(toldFormat) })
const toldSwitch = v.looseObject({ isNew: v.boolean(), dryRun: v.boolean(), before: toldFormat, after: toldFormat })

function readVersion(text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text)) return Number(text)
  throw new RejoinError(`--id-version is ${JSON.stringify(text)}. Give a whole number from 1 to 999.`, {
    code: 'invalid-option',
  })
}

function linesOf({ isNew, dryRun, before, after }: ToldSwitch): string[] {
  if (!isNew) return [`The log writes ${nameOf(after)} ids already. Nothing was to be done.`]
  if (dryRun) {
    return [
      `New events would get ${nameOf(after)} ids instead of ${nameOf(before)} ids, on all hubs of this log, from the next event on.`,
      'Ids that readers hold would stay good. Run it without --dry-run to switch.',
    ]
  }
  return [
    `New events get ${nameOf(after)} ids instead of ${nameOf(before)} ids, on all hubs of this log, since ${sinceOf(after)}.`,
    'Ids that readers hold stay good. The log keeps this over restarts; its hubs need no other settings.',
  ]
}

function rowOf(format: ToldFormat): string[] {
  return [nameOf(format), sinceOf(format)]
}

function nameOf({ format, version }: ToldFormat): string {
  return plainText(version === null ? format : `v${version}_ ${format}`)
}

/** Since when a format holds: the number of an event for a log that counts, the time for any other log. */
function sinceOf({ since }: ToldFormat): string {
  if (since === null) return 'the beginning'
  return since.ms === 0 ? `event ${since.seq}` : new Date(since.ms).toISOString()
}
