import type { EventStream, RetryWait } from '@rejoin/client'
import { checkSelector, isIdText, isPattern, RejoinError } from '@rejoin/protocol'
import type { Command } from 'commander'
import { invalidOption } from '../../errors.ts'
import { hasColour } from '../../logging/style.ts'
import { exitCodes } from '../exit-code.ts'
import { createOutput } from '../output.ts'
import { fail, type ProgramHost } from '../program-host.ts'
import { collect } from './collect.ts'
import { type AddressFlags, addAddressFlags, type HubAddress, hubAddress } from './hub-address.ts'
import { createRejections } from './rejections.ts'
import { eventLine, gapLine } from './tail-lines.ts'
import { explainEnd, tellState } from './tail-state.ts'

export function addTail(program: Command, host: ProgramHost): void {
  const command = program
    .command('tail')
    .description('print the events of channels as they arrive; continues after cuts and restarts')
    .argument('<channels...>', 'channels, or patterns such as orders/*')
    .option('--since <id>', 'begin after this id; "earliest" begins with the oldest event that the hub keeps')
    .option('--last <number>', 'begin with this many of the newest events')
    .option('--type <type>', 'print only events of this type; repeatable', collect)
    .option('--count <number>', 'end after this many events')
    .option('--json', 'print a JSON object for each event, and for each gap')
    .option('--quiet', 'do not report the state of the connection')
  addAddressFlags(command, 'REJOIN_TOKEN').action((channels: string[]) => runTail(channels, command.opts(), host))
}

interface TailFlags extends AddressFlags {
  readonly since?: string
  readonly last?: string
  readonly type?: string[]
  readonly count?: string
  readonly json?: true
  readonly quiet?: true
}

async function runTail(channels: readonly string[], flags: TailFlags, host: ProgramHost): Promise<void> {
  const address = await hubAddress(flags, host)
  const count = flags.count === undefined ? Number.POSITIVE_INFINITY : wholeNumber(flags.count, '--count')
  const url = streamUrl(address, channels, flags)
  const { connect } = await import('@rejoin/client')
  const output = createOutput(host)
  const style = {
    json: flags.json === true,
    showChannel: showsChannel(channels),
    colour: hasColour(host.stdout, host.env),
  }

  const rejections = createRejections(address.url)
  const stream = connect(url, {
    from: flags.since ?? null,
    parse: 'text',
    keep: 0,
    backoff: soon,
    fetch: rejections.fetch,
    ...(address.token === undefined ? {} : { token: address.token }),
  })
  stream.onSync((gap) => {
    const line = gapLine(gap, style)
    return flags.json ? output.line(line) : void host.stderr.write(`${line}\n`)
  })
  if (!flags.quiet) tellState(stream, { url: address.url, channels, rejections }, host)
  const ending = endWhenTold(stream, host, output.closed)

  let printed = 0
  for await (const event of stream) {
    await output.line(eventLine(event, style))
    printed += 1
    if (printed >= count) break
  }
  stream.close()
  const end = ending.code ?? (printed >= count ? exitCodes.done : undefined)
  if (end !== undefined) host.exitCode = end
  else finish(stream, address, host)
}

/** A short wait: a person watches, and one reader is no crowd. The client still waits at least as long as the hub asks for. */
function soon({ baseMs, failures }: RetryWait): number {
  return Math.min(baseMs * 2 ** failures, 2000) * Math.random()
}

function streamUrl({ url }: HubAddress, channels: readonly string[], { type = [], last, since }: TailFlags): URL {
  if (last !== undefined && since !== undefined) {
    throw invalidOption('--since and --last both say where to begin. Leave one out.')
  }
  if (since !== undefined && !isIdText(since)) {
    throw new RejoinError(`--since is ${JSON.stringify(since)}. Give the id of an event, or earliest.`, {
      code: 'invalid-option',
    })
  }
  const address = new URL(`${url}/events`)
  for (const channel of channels) address.searchParams.append('channel', checkSelector(channel))
  for (const each of type) address.searchParams.append('type', each)
  if (last !== undefined) address.searchParams.set('replay', String(wholeNumber(last, '--last')))
  address.searchParams.set('show', 'channel')
  return address
}

function wholeNumber(text: string, option: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new RejoinError(`${option} is ${JSON.stringify(text)}. Give a whole number of at least 1.`, {
    code: 'invalid-option',
  })
}

function showsChannel(channels: readonly string[]): boolean {
  return channels.length > 1 || channels.some(isPattern)
}

/** Ends the stream on a signal, when the reader of the output has gone, or when the output cannot be written. */
function endWhenTold(stream: Pick<EventStream, 'close'>, host: ProgramHost, closed: AbortSignal): { code?: number } {
  const ending: { code?: number } = {}
  const end = (code: number) => {
    ending.code ??= code
    stream.close()
  }
  host.on('SIGINT', () => end(exitCodes.interrupted))
  host.on('SIGTERM', () => end(exitCodes.terminated))
  closed.addEventListener('abort', () => end(host.exitCode === undefined ? exitCodes.done : exitCodes.failed))
  return ending
}

function finish({ state: { closeReason } }: Pick<EventStream, 'state'>, address: HubAddress, host: ProgramHost): void {
  if (closeReason === 'finished') return
  const { message, exitCode } = explainEnd(closeReason, address)
  fail(host, message, exitCode)
}
