import type { CheckName, Report } from '@rejoin/doctor'
import { type ProxyName, proxyNames } from '@rejoin/doctor/proxy-name'
import { RejoinError } from '@rejoin/protocol'
import { type Command, Option } from 'commander'
import { isLoopbackHost } from '../../access/hosts.ts'
import { hasColour } from '../../logging/style.ts'
import { readDuration } from '../duration.ts'
import { exitCodes } from '../exit-code.ts'
import { createProgress } from '../live-view.ts'
import { createOutput, jsonLine } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { reportLines, titleOf } from './doctor-lines.ts'
import { withAdvice } from './hub-address.ts'
import { whyUnreachable } from './unreachable.ts'

export function addDoctor(program: Command, host: ProgramHost): void {
  const command = program
    .command('doctor')
    .description('find out what the proxies before a hub do to its streams, and what to change')
    .argument('<address>', 'address that readers use: of a hub, or of an event stream of any server')
    .option('--origin <origin>', 'also check whether pages of this origin may read: https://app.example')
    .option('--idle <time>', 'also keep a quiet stream open for this long, such as 70s; at most 110s')
    .addOption(new Option('--proxy <name>', 'proxy before the hub, if its answers do not name it').choices(proxyNames))
    .option('--token <token>', 'token or API key, for hubs without probes (default: REJOIN_TOKEN)')
    .option('--json', 'print a JSON object')
  command.action((address: string) => runDoctor(address, command.opts(), host))
}

interface DoctorFlags {
  readonly origin?: string
  readonly idle?: string
  readonly proxy?: ProxyName
  readonly token?: string
  readonly json?: true
}

async function runDoctor(address: string, flags: DoctorFlags, host: ProgramHost): Promise<void> {
  const url = checkAddress(address)
  const idleMs = flags.idle === undefined ? 0 : readDuration(flags.idle, '--idle')
  const origin = flags.origin === undefined ? undefined : checkOrigin(flags.origin)
  const token = flags.token ?? host.env.REJOIN_TOKEN
  const output = createOutput(host)
  const report = await examined(url, host, token, {
    idleMs,
    ...(origin === undefined ? {} : { origin }),
    ...(flags.proxy === undefined ? {} : { proxy: flags.proxy }),
  })
  const lines = flags.json
    ? [jsonLine(JSON.stringify(report))]
    : reportLines(report, { colour: hasColour(host.stdout, host.env) })
  for (const line of lines) await output.line(line)
  host.exitCode = report.checks.some(({ state }) => state === 'fault') ? exitCodes.failed : exitCodes.done
}

async function examined(url: string, host: ProgramHost, token: string | undefined, given: object): Promise<Report> {
  const options = { ...given, ...(token ? { token } : {}) }
  const { examine } = await import('@rejoin/doctor')
  const progress = createProgress(host)
  const startedAt = Date.now()
  let waiting: readonly CheckName[] = []
  const show = () => progress.show(() => progressText(url, waiting, Date.now() - startedAt))
  const timer = setInterval(show, 250)
  show()
  try {
    return await examine(url, { ...options, onProgress: (names: readonly CheckName[]) => (waiting = names) })
  } catch (error) {
    if (error instanceof RejoinError) throw withAdvice(error, token)
    // Wrapped, because `fetch` keeps the reason of a failure in its cause.
    throw (await whyUnreachable({ cause: error }, url, host)) ?? brokenOff(url, error)
  } finally {
    clearInterval(timer)
    progress.clear()
  }
}

function progressText(url: string, waiting: readonly CheckName[], ms: number): string {
  const what = waiting.length === 0 ? `asking ${new URL(url).host}` : `waiting for ${waiting.map(titleOf).join(', ')}`
  return `${(ms / 1000).toFixed(1)} s  ${what}`.slice(0, 100)
}

function brokenOff(url: string, cause: unknown): RejoinError {
  const { message } = cause as Error
  return new RejoinError(
    `${new URL(url).origin} broke off the connection (${message}). Try again, or look at its log.`,
    {
      code: 'unreachable',
      retryable: true,
      cause,
    },
  )
}

function checkAddress(text: string): string {
  // Without a scheme, an address of this machine means http: `rejoin serve` starts without a certificate.
  const scheme = isLoopbackHost(/^[^/]*/.exec(text)?.[0]) ? 'http' : 'https'
  const full = text.includes('://') ? text : `${scheme}://${text}`
  const url = URL.canParse(full) ? new URL(full) : undefined
  if (url && /^https?:$/.test(url.protocol) && !url.username) return url.href
  throw new RejoinError(`${JSON.stringify(text)} is no address. Give one such as https://hub.example`, {
    code: 'invalid-option',
  })
}

function checkOrigin(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : 'null'
  if (origin !== 'null' && origin === text.replace(/\/$/, '')) return origin
  throw new RejoinError(
    `--origin is ${JSON.stringify(text)}. Give it as browsers do, without a path: https://app.example`,
    {
      code: 'invalid-option',
    },
  )
}
