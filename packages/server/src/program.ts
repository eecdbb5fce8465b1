import type { LogSource } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import type { Announcer } from './announce/announcer.ts'
import { type AnnouncerHost, createAnnouncer } from './announce.ts'
import { type Serving, serve } from './serve.ts'
import { version } from './version.ts'

/** Does what the command line asks. Resolves when that is done, or, for a server, when it listens. */
export async function runProgram(args: readonly string[], host: ProgramHost): Promise<void> {
  try {
    await commandLine(host).parseAsync(args, { from: 'user' })
  } catch (error) {
    // Commander has said what was wrong with the command line, or shown the help that was asked for.
    if (error instanceof CommanderError) host.exitCode = error.exitCode
    else if (error instanceof RejoinError) fail(host, error.message)
    else throw error
  }
}

/** The part of `process` that the program lives in. */
export interface ProgramHost extends AnnouncerHost {
  readonly stderr: { write(text: string): unknown }
  exitCode?: number | string | null | undefined
  on(signal: 'SIGINT' | 'SIGTERM', listener: () => void): unknown
  exit(code: number): void
}

const defaultFolder = './.rejoin'

function commandLine(host: ProgramHost): Command {
  const program = new Command('rejoin')
    .description('Resumable event streams over Server-Sent Events.')
    .version(version)
    .exitOverride()
    .configureOutput({ writeOut: (text) => host.stdout.write(text), writeErr: (text) => host.stderr.write(text) })
  program
    .command('serve', { isDefault: true })
    .description('run a hub and its playground')
    .addOption(
      new Option('--port <number>', 'port to listen on; 0 takes a free one').argParser(parsePort).default(4747),
    )
    .option('--host <name>', 'name or address to listen on', '127.0.0.1')
    .addOption(new Option('--log <name>', 'where events are kept').choices(['lmdb', 'memory']).default('lmdb'))
    .option('--data <dir>', `folder of the lmdb log (default: "${defaultFolder}")`)
    .option('--insecure', 'listen beyond this machine although there are no access rules')
    .action((flags: ServeFlags) => runServe(flags, host))
  return program
}

interface ServeFlags {
  port: number
  host: string
  log: 'lmdb' | 'memory'
  data?: string
  insecure?: boolean
}

function parsePort(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new InvalidArgumentError('Give a number from 0 to 65535.')
}

async function runServe({ log: name, data, ...address }: ServeFlags, host: ProgramHost): Promise<void> {
  const folder = name === 'lmdb' ? (data ?? defaultFolder) : undefined
  if (data !== undefined && folder === undefined) {
    throw new RejoinError(`The ${name} log keeps nothing on disk, so it has no use for ${data}. Leave out --data.`, {
      code: 'invalid-option',
    })
  }
  const announcer = await createAnnouncer(host)
  try {
    const log = await logIn(folder)
    const ready: Announcer['ready'] = (facts) => announcer.ready({ ...facts, ...(folder ? { folder } : {}) })
    const serving = await serve({ ...address, log, announcer: { ...announcer, ready } })
    endOnSignal(serving, host, announcer.stopping)
  } catch (error) {
    const advice = error instanceof RejoinError && adviceFor(error, nextPort(address.port), folder)
    if (!advice) throw error
    fail(host, `${error.message}\n\n  ${commandWith(advice, host)}\n`)
  }
}

/** Loaded only where it is used: lmdb is a library of its own, and costs a start some milliseconds. */
async function logIn(folder: string | undefined): Promise<LogSource> {
  if (folder === undefined) return (await import('@rejoin/hub/memory')).memoryLog()
  return (await import('@rejoin/hub/lmdb')).lmdbLog(folder)
}

/** The flags with which it would work; undefined when it would not help to try others. */
function adviceFor({ code, retryable }: RejoinError, port: number, folder: string | undefined): string | undefined {
  if (code === 'address-in-use') return `--port ${port}`
  if (code === 'log-unavailable' && retryable && folder) return `--port ${port} --data ${folder}-2`
  return undefined
}

/** The first signal ends in order; the second, from someone who will not wait, at once. */
function endOnSignal(serving: Serving, host: ProgramHost, announce: (signal: string) => void): void {
  let ending = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    host.on(signal, () => {
      if (ending) return host.exit(1)
      ending = true
      announce(signal)
      serving.close().catch((error) => fail(host, String(error)))
    })
  }
}

/** In the words with which the program was started. */
function commandWith(flags: string, { env }: ProgramHost): string {
  return env.npm_lifecycle_event === 'start' ? `npm start -- ${flags}` : `rejoin serve ${flags}`
}

function nextPort(port: number): number {
  return port < 65_535 ? port + 1 : 4747
}

function fail(host: ProgramHost, message: string): void {
  host.stderr.write(`rejoin: ${message}\n`)
  host.exitCode = 1
}
