import type { PublishMessage } from '@rejoin/client/publisher'
import { jsonMistake, plainLines } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import type { Command } from 'commander'
import { invalidOption } from '../../errors.ts'
import { durationWords } from '../../logging/duration.ts'
import { createProgress } from '../live-view.ts'
import { createOutput, jsonLine } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { parseDataArgument } from './data-argument.ts'
import { type AddressFlags, addAddressFlags, hubAddress } from './hub-address.ts'
import { type HubPublisher, openPublisher } from './hub-publisher.ts'
import { type InputLine, inputLines, wholeInput } from './input-lines.ts'

export function addPublish(program: Command, host: ProgramHost): void {
  const command = program
    .command('publish')
    .description('publish to a running hub: one event, or one event for each line of the input')
    .argument('[channel]', 'channel of the event; with --ndjson, channel of the lines that name no channel')
    .argument('[data]', 'data of the event; without it, or with "-", read from the input')
    .option('--type <type>', 'type of the event (default: message)')
    .option('--key <key>', 'key of the event, in a channel that retains the newest event of each key')
    .option('--live', 'send the event to connected readers only, and do not keep it')
    .option('--lines', 'publish each line of the input as an event')
    .option('--ndjson', 'read each line of the input as a JSON object with channel, type, data or text, key, live')
    .option(
      '--idempotency-key <key>',
      'publish at most once under this key; with several lines, each line at most once',
    )
    .option('--json', 'print a JSON object for each event')
  addAddressFlags(command, 'REJOIN_TOKEN').action(async (channel: string | undefined, data: string | undefined) => {
    await runPublish(channel, data, command.opts(), host)
  })
}

interface PublishFlags extends AddressFlags {
  readonly type?: string
  readonly key?: string
  readonly live?: true
  readonly lines?: true
  readonly ndjson?: true
  readonly idempotencyKey?: string
  readonly json?: true
}

async function runPublish(
  channel: string | undefined,
  data: string | undefined,
  flags: PublishFlags,
  host: ProgramHost,
): Promise<void> {
  rejectContradictions(channel, data, flags, host)
  const publisher = await openPublisher(await hubAddress(flags, host), host)
  if (flags.lines || flags.ndjson) return publishLines(publisher, channel, flags, host)
  const text = data === undefined || data === '-' ? await wholeInput(host.stdin) : data
  if (text === '' && data === undefined) {
    throw invalidOption(
      'The input is empty, so there is nothing to publish. For an event without data, say: publish <channel> ""',
    )
  }
  const name = channel as string
  const { id } = await publisher.publish(
    { channel: name, ...optionsOf(flags), ...parseDataArgument(text) },
    flags.idempotencyKey,
  )
  await createOutput(host).line(flags.json ? jsonLine(JSON.stringify({ id, channel: name })) : plainLines(id))
}

function rejectContradictions(
  channel: string | undefined,
  data: string | undefined,
  { lines, ndjson }: PublishFlags,
  { stdin }: ProgramHost,
): void {
  if (lines && ndjson) throw invalidOption('--lines takes each line as it is, --ndjson as a JSON object. Choose one.')
  if ((lines || ndjson) && data !== undefined && data !== '-') {
    throw invalidOption(
      'The data is on the command line, and --lines and --ndjson read it from the input. Leave one out.',
    )
  }
  if (channel === undefined && !ndjson) throw invalidOption('Say where to publish: rejoin publish <channel> <data>')
  if (data === undefined && stdin.isTTY) {
    throw invalidOption(
      'There is nothing to publish. Say it: rejoin publish <channel> <data>, or send it through a pipe.',
    )
  }
}

async function publishLines(
  publisher: HubPublisher,
  channel: string | undefined,
  flags: PublishFlags,
  host: ProgramHost,
): Promise<void> {
  const output = createOutput(host)
  const progress = createProgress(host)
  const began = Date.now()
  let count = 0
  try {
    for await (const lines of inputLines(host.stdin)) {
      for (const batch of batches(eventsOf(lines, channel, flags), flags.idempotencyKey === undefined)) {
        progress.show(() => `${count.toLocaleString('en')} published`)
        for await (const { id, line, channel } of publishBatch(publisher, batch, flags.idempotencyKey)) {
          count += 1
          if (flags.json) await output.line(jsonLine(JSON.stringify({ id, channel, line })))
          // On a terminal no ids are printed: thousands of them help a program, not a person.
          else if (!host.stdout.isTTY) await output.line(plainLines(id))
        }
      }
    }
  } catch (error) {
    progress.clear()
    if (!(error instanceof RejoinError)) throw error
    const before =
      count === 0 ? 'Nothing was published.' : `Before it, ${events(count)} ${count === 1 ? 'was' : 'were'} published.`
    throw new RejoinError(`${error.message} ${before}`, { code: error.code, retryable: error.retryable, cause: error })
  }
  progress.clear()
  host.stderr.write(`${events(count)} published in ${durationWords(Date.now() - began)}.\n`)
}

function events(count: number): string {
  return `${count.toLocaleString('en')} ${count === 1 ? 'event' : 'events'}`
}

interface LineEvent {
  readonly line: number
  readonly bytes: number
  readonly event: PublishMessage & { readonly channel: string }
}

function eventsOf(lines: readonly InputLine[], channel: string | undefined, flags: PublishFlags): LineEvent[] {
  return lines
    .filter(({ text }) => flags.lines || text.trim() !== '')
    .map(({ number, text }) => {
      const given = flags.ndjson ? readEvent(text, number) : parseDataArgument(text)
      const event = {
        ...(channel === undefined ? {} : { channel }),
        ...optionsOf(flags),
        ...given,
      } as LineEvent['event']
      if (event.channel === undefined) {
        throw invalidOption(`Line ${number} names no channel. Give it one, or say: rejoin publish <channel> --ndjson`)
      }
      return { line: number, bytes: text.length, event }
    })
}

function readEvent(text: string, number: number): object {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw invalidOption(`Line ${number} is not JSON: ${jsonMistake(cause)}. ${linesAdvice}`)
  }
  if (typeof value === 'object' && value !== null && ('data' in value || 'text' in value)) return value
  throw invalidOption(`Line ${number} is no event such as {"channel": "orders/42", "data": 1}. ${linesAdvice}`)
}

const linesAdvice = 'To publish lines as they are, say --lines.'

function optionsOf({ type, key, live }: PublishFlags): Pick<PublishMessage, 'type' | 'key' | 'live'> {
  return {
    ...(type === undefined ? {} : { type }),
    ...(key === undefined ? {} : { key }),
    ...(live ? { live } : {}),
  }
}

/** Batches that fit into one request. With an idempotency key, each line is a batch, so that a grown file can be sent again. */
function* batches(events: readonly LineEvent[], together: boolean): Generator<LineEvent[]> {
  let batch: LineEvent[] = []
  let bytes = 0
  for (const each of events) {
    if (batch.length > 0 && (!together || batch.length === maxBatch || bytes + each.bytes > maxBatchBytes)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(each)
    bytes += each.bytes
  }
  if (batch.length > 0) yield batch
}

// A hub takes 1,000 events and 256 KiB (§5.1). The bounds are lower, because JSON's escapes and UTF-8 are not counted here.
const maxBatch = 500
const maxBatchBytes = 64 * 1024

interface PublishedLine {
  readonly id: string
  readonly line: number
  readonly channel: string
}

/** Publishes a rejected batch again line by line, to find the wrong line. No event of a rejected batch was published (§5.1). */
async function* publishBatch(
  publisher: HubPublisher,
  batch: readonly LineEvent[],
  key: string | undefined,
): AsyncGenerator<PublishedLine> {
  const [first, second] = batch
  if (first && second) {
    const ids = await publisher.publishBatch(batch.map(({ event }) => event)).catch((error: unknown) => {
      if (error instanceof RejoinError && !error.retryable) return undefined
      throw error
    })
    for (const [index, { line, event }] of batch.entries()) {
      const id = ids?.[index]?.id
      if (id === undefined) yield* publishBatch(publisher, [{ line, event, bytes: 0 }], key)
      else yield { id, line, channel: event.channel }
    }
  } else if (first) {
    yield await publishLine(publisher, first, key)
  }
}

async function publishLine(
  publisher: HubPublisher,
  { line, event }: LineEvent,
  key: string | undefined,
): Promise<PublishedLine> {
  try {
    const { id } = await publisher.publish(event, key === undefined ? undefined : `${key}-${line}`)
    return { id, line, channel: event.channel }
  } catch (error) {
    if (!(error instanceof RejoinError)) throw error
    const { code, retryable } = error
    throw new RejoinError(`Line ${line}: ${error.message}`, { code, retryable, cause: error })
  }
}
