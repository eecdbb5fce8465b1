import { plainText } from '@rejoin/hub/internal'
import type { Command } from 'commander'
import * as v from 'valibot'
import { durationWords } from '../../logging/duration.ts'
import { table } from '../../logging/table.ts'
import { createOutput, jsonLine } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { adminCall } from './admin-call.ts'
import { type AddressFlags, addAddressFlags, adminAddress } from './hub-address.ts'

export function addChannels(program: Command, host: ProgramHost): void {
  const command = program
    .command('channels')
    .description('list the channels of a running hub, and the events that each keeps')
    .argument('[prefix]', 'list only channels whose names begin with this')
    .option('--json', 'print a JSON object for each channel')
  addAddressFlags(command, 'REJOIN_ADMIN_TOKEN').action(async (prefix: string | undefined) => {
    await runChannels(prefix ?? '', command.opts(), host)
  })
}

async function runChannels(prefix: string, flags: AddressFlags & { json?: true }, host: ProgramHost): Promise<void> {
  const address = await adminAddress(flags, host)
  const output = createOutput(host)
  const rows: string[][] = []
  let after: string | null = ''
  while (after !== null && !output.closed.aborted) {
    const query: string = new URLSearchParams({ prefix, after, limit: String(pageSize) }).toString()
    const page = await adminCall(address, host, `/admin/channels?${query}`, listedChannels)
    for (const channel of page.channels) {
      if (flags.json) await output.line(jsonLine(JSON.stringify(channel)))
      else rows.push(rowOf(channel))
    }
    after = page.next
  }
  if (flags.json) return
  if (rows.length === 0) return void host.stderr.write(`${nothingFound(prefix)}\n`)
  const headings = ['channel', 'events', 'bytes', 'oldest', 'newest id']
  for (const line of table([headings, ...rows], [1, 2, 3])) await output.line(line)
}

const pageSize = 1000

function nothingFound(prefix: string): string {
  return prefix === '' ? 'No channel holds anything.' : `No channel begins with ${plainText(JSON.stringify(prefix))}.`
}

// In the order of the answer, which `--json` prints: the fields named here come first.
const listedChannel = v.looseObject({
  channel: v.string(),
  events: v.number(),
  bytes: v.number(),
  oldest: v.nullable(v.string()),
  newest: v.nullable(v.string()),
  oldestAt: v.nullable(v.number()),
  ended: v.boolean(),
})
const listedChannels = v.looseObject({ channels: v.array(listedChannel), next: v.nullable(v.string()) })

function rowOf({ channel, events, bytes, oldestAt, newest, ended }: v.InferOutput<typeof listedChannel>): string[] {
  const age = oldestAt === null ? '-' : durationWords(Math.max(Date.now() - oldestAt, 0))
  const name = plainText(channel, 60)
  const cells = [ended ? `${name} (ended)` : name, String(events), String(bytes), age, newest ?? '-']
  return cells.map((cell) => plainText(cell))
}
