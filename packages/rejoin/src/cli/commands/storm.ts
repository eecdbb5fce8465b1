import { randomBytes } from 'node:crypto'
import { checkChannel, RejoinError } from '@rejoin/protocol'
import type { StormPlan, StormReport } from '@rejoin/storm'
import type { Command } from 'commander'
import { isLoopbackHost } from '../../access/hosts.ts'
import { invalidOption } from '../../errors.ts'
import { hasColour } from '../../logging/style.ts'
import { readDuration } from '../duration.ts'
import { type ExitCode, exitCodeOf, exitCodes } from '../exit-code.ts'
import { createOutput, jsonLine } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { checkUrl, type HubAddress, withAdvice } from './hub-address.ts'
import { openPublisher } from './hub-publisher.ts'
import { stormLines } from './storm-lines.ts'
import { checkRoom, roomHere } from './storm-room.ts'
import { watchStorm } from './storm-view.ts'
import { whyUnreachable } from './unreachable.ts'

export function addStorm(program: Command, host: ProgramHost): void {
  const command = program
    .command('storm')
    .description('load a hub with readers that are cut and return, and check that they miss nothing')
    .argument('<address>', 'address of the hub that readers use')
    .option('--readers <number>', 'connections that read', '100')
    .option('--channels <number>', 'channels that are published to', '10')
    .option('--patterns <percent>', 'share of readers that read all channels, by a pattern', '10')
    .option('--slow <percent>', 'share of readers that take at most 64 KB a second', '0')
    .option('--rate <number>', 'events a second, over all channels', '50')
    .option('--size <characters>', 'length of the data in each event', '200')
    .option('--for <time>', 'how long events are published; at most 1h', '20s')
    .option('--cut <percent>', 'share of readers that are cut each time', '100')
    .option('--every <time>', 'how often readers are cut', '5s')
    .option('--away <time>', 'how long a cut reader stays away (default: as the hub tells it, by retry)')
    .option('--patience <time>', 'how long a reader may wait for its next event at the end', '10s')
    .option('--prefix <name>', 'prefix of the channel names; the storm needs the right to <name>/*', 'storm')
    .option('--token <token>', 'token or API key; other users of this machine can see flags, so REJOIN_TOKEN is safer')
    .option('--i-own-this-server', 'allow a storm on another machine than this one')
    .option('--json', 'print a JSON object')
    .addHelpText(
      'after',
      `
Examples:
  rejoin storm http://127.0.0.1:4747
  rejoin storm http://127.0.0.1:4747 --readers 5000 --rate 200 --away 1s
  rejoin storm http://127.0.0.1:4747 --cut 20 --every 1s --slow 5 --for 5m
  REJOIN_TOKEN=… rejoin storm https://staging.example --i-own-this-server --json`,
    )
  command.action((address: string) => runStormCommand(address, command.opts(), host))
}

interface StormFlags {
  readonly readers: string
  readonly channels: string
  readonly patterns: string
  readonly slow: string
  readonly rate: string
  readonly size: string
  readonly for: string
  readonly cut: string
  readonly every: string
  readonly away?: string
  readonly patience: string
  readonly prefix: string
  readonly token?: string
  readonly iOwnThisServer?: true
  readonly json?: true
}

async function runStormCommand(given: string, flags: StormFlags, host: ProgramHost): Promise<void> {
  const url = checkUrl(given)
  const plan = planOf(flags)
  rejectStrangers(url, plan, flags)
  const token = flags.token ?? host.env.REJOIN_TOKEN
  const address: HubAddress = { url, ...(token ? { token } : {}) }
  const interrupted = interruptions(host)
  const output = createOutput(host)
  const report = await storm(plan, address, interrupted, host)
  const { deleteChannels } = await import('./storm-channels.ts')
  const kept = await deleteChannels(plan, address)
  const lines = flags.json
    ? [jsonLine(JSON.stringify({ ...report, keptChannels: kept }))]
    : stormLines(report, { colour: hasColour(host.stdout, host.env), kept })
  for (const line of lines) await output.line(line)
  host.exitCode = exitCodeFor(report, interrupted)
}

async function storm(
  plan: StormPlan,
  address: HubAddress,
  signal: AbortSignal,
  host: ProgramHost,
): Promise<StormReport> {
  const { url, token } = address
  const { runStorm } = await import('@rejoin/storm')
  checkRoom(plan.readers, roomHere())
  const { publishBatch } = await openPublisher(address, host)
  const view = watchStorm(url, plan, host)
  try {
    return await runStorm(plan, {
      url: new URL(url),
      ...(token === undefined ? {} : { token }),
      publish: publishBatch,
      signal,
      onProgress: view.show,
    })
  } catch (error) {
    if (error instanceof RejoinError) throw withAdvice(error, token)
    throw (await whyUnreachable({ cause: error }, url, host)) ?? brokenOff(url, error)
  } finally {
    view.clear()
  }
}

function planOf(flags: StormFlags): StormPlan {
  const prefix = flags.prefix.replace(/\/$/, '')
  return {
    readers: numberIn(flags.readers, '--readers', 1, 60_000),
    channels: numberIn(flags.channels, '--channels', 1, 10_000),
    patternPercent: numberIn(flags.patterns, '--patterns', 0, 100),
    slowPercent: numberIn(flags.slow, '--slow', 0, 100),
    rate: numberIn(flags.rate, '--rate', 1, 100_000),
    size: numberIn(flags.size, '--size', 1, 200_000),
    forMs: timeUpTo(flags.for, '--for', 3_600_000),
    cutPercent: numberIn(flags.cut, '--cut', 0, 100),
    cutEveryMs: readDuration(flags.every, '--every'),
    ...(flags.away === undefined ? {} : { awayMs: readDuration(flags.away, '--away') }),
    patienceMs: timeUpTo(flags.patience, '--patience', 600_000),
    // Random, so that neither another storm nor older events on the hub disturb this one.
    prefix: checkChannel(`${prefix}/${randomBytes(4).toString('hex')}`),
  }
}

function numberIn(text: string, option: string, least: number, most: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw invalidOption(`${option} is ${JSON.stringify(text)}. Give a whole number from ${least} to ${most}.`)
}

function timeUpTo(text: string, option: string, mostMs: number): number {
  const ms = readDuration(text, option)
  if (ms <= mostMs) return ms
  throw invalidOption(`${option} is ${text}. Give at most ${mostMs / 60_000}m.`)
}

/** Rejects a storm on another machine without consent: on a stranger's server, or by a typing error, it would be an attack. */
function rejectStrangers(url: string, { readers, rate }: StormPlan, { iOwnThisServer }: StormFlags): void {
  const { host } = new URL(url)
  if (isLoopbackHost(host) || iOwnThisServer) return
  throw invalidOption(
    `${host} is not this machine. The storm would open ${readers} connections there and publish ${rate} events a second. ` +
      'If the server is yours to load, say so: --i-own-this-server',
  )
}

/** The first Ctrl-C ends the storm with a summary, the second ends the program at once. */
function interruptions(host: ProgramHost): AbortSignal {
  const interrupting = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    host.on(signal, () => {
      if (interrupting.signal.aborted) host.exit(exitCodes.interrupted)
      interrupting.abort()
    })
  }
  return interrupting.signal
}

function brokenOff(url: string, cause: unknown): RejoinError {
  return new RejoinError(
    `${url} broke off the first connection (${(cause as Error).message}). Try: rejoin doctor ${url}`,
    {
      code: 'unreachable',
      retryable: true,
      cause,
    },
  )
}

function exitCodeFor({ verdict, failure }: StormReport, interrupted: AbortSignal): ExitCode {
  if (verdict === 'broken') return exitCodes.failed
  if (interrupted.aborted) return exitCodes.interrupted
  if (failure) return exitCodeOf(failure)
  return verdict === 'held' ? exitCodes.done : exitCodes.tryLater
}
