import { setTimeout } from 'node:timers/promises'
import type { Command } from 'commander'
import * as v from 'valibot'
import { counted } from '../../counted.ts'
import { durationWords } from '../../logging/duration.ts'
import { readDuration } from '../duration.ts'
import { createProgress } from '../live-view.ts'
import { createOutput } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { adminCall } from './admin-call.ts'
import { type AddressFlags, addAddressFlags, adminAddress, type HubAddress } from './hub-address.ts'

export function addDrain(program: Command, host: ProgramHost): void {
  const command = program
    .command('drain')
    .description(
      'close all streams of a running hub and reject readers until it is restarted, so that they go to other hubs',
    )
    .option('--within <time>', 'time over which streams are closed', '5s')
    .option('--announce <time>', 'this long before the first close, tell readers to wait longer before they return')
    .option('--no-wait', 'do not wait until all streams are closed')
    .option('--json', 'print a JSON object')
  addAddressFlags(command, 'REJOIN_ADMIN_TOKEN').action(() => runDrain(command.opts(), host))
}

interface DrainFlags extends AddressFlags {
  readonly within: string
  readonly announce?: string
  readonly wait: boolean
  readonly json?: true
}

async function runDrain(flags: DrainFlags, host: ProgramHost): Promise<void> {
  const withinMs = readDuration(flags.within, '--within')
  const announceMs = flags.announce === undefined ? 0 : readDuration(flags.announce, '--announce')
  const address = await adminAddress(flags, host)
  const output = createOutput(host)
  const readers = await countReaders(address, host)
  await adminCall(address, host, '/admin/drain', v.unknown(), { withinMs, announceMs })
  const left = flags.wait ? await waitForReaders(address, host, announceMs + withinMs) : undefined
  if (flags.json)
    return output.line(JSON.stringify({ draining: true, withinMs, readers, ...(left === undefined ? {} : { left }) }))
  return output.line(`${outcome(readers, left, withinMs)} The hub takes no readers until it is restarted.`)
}

function outcome(readers: number, left: number | undefined, withinMs: number): string {
  if (left === undefined) return `Letting ${counted(readers, 'reader')} go within ${durationWords(withinMs)}.`
  return left === 0 ? goneWords(readers) : `${left} of ${counted(readers, 'reader')} still there.`
}

function goneWords(readers: number): string {
  if (readers === 0) return 'There was no reader.'
  return readers === 1 ? 'The one reader is gone.' : `All ${readers} readers are gone.`
}

/** Waits until no reader is left, or the time of the drain is over. Returns how many are left. */
async function waitForReaders(address: HubAddress, host: ProgramHost, withinMs: number): Promise<number> {
  const progress = createProgress(host)
  const until = Date.now() + withinMs + graceMs
  let left = await countReaders(address, host)
  while (left > 0 && Date.now() < until) {
    progress.show(() => `${counted(left, 'reader')} left`)
    await setTimeout(everyMs)
    left = await countReaders(address, host)
  }
  progress.clear()
  return left
}

const everyMs = 200
// The last reader is told at the end of the drain, and its connection ends a little later.
const graceMs = 2000

async function countReaders(address: HubAddress, host: ProgramHost): Promise<number> {
  const { total } = await adminCall(address, host, '/admin/connections?limit=1', v.looseObject({ total: v.number() }))
  return total
}
