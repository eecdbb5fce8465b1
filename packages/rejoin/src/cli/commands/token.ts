import { plainText } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import type { Command } from 'commander'
import { defaultConfigFile } from '../../config/file.ts'
import { loadConfig } from '../../config/load.ts'
import { durationWords } from '../../logging/duration.ts'
import { table } from '../../logging/table.ts'
import { readDuration } from '../duration.ts'
import { exitCodes } from '../exit-code.ts'
import { createOutput } from '../output.ts'
import type { ProgramHost } from '../program-host.ts'
import { collect } from './collect.ts'
import { wholeInput } from './input-lines.ts'
import { explainToken, type TokenExplanation } from './token-explain.ts'
import { mintToken } from './token-mint.ts'

export function addToken(program: Command, host: ProgramHost): void {
  const token = program
    .command('token')
    .description('make tokens for a hub, or explain a token, by the settings of this folder')
  const mint = token
    .command('mint')
    .description('sign a token with the secret in access.jwt')
    .requiredOption('--subject <name>', 'subject of the token: a user or a program')
    .option('--subscribe <pattern>', 'channels that the token may read, such as news or orders/*; repeatable', collect)
    .option('--publish <pattern>', 'channels that the token may publish to; repeatable', collect)
    .option('--expires <time>', 'how long the token is valid', '15m')
    .option('--config <file>', `file with the hub's settings (default: ${defaultConfigFile}, if it exists)`)
    .option('--json', 'print a JSON object with the token and its claims')
  mint.action(() => runMint(mint.opts(), host))

  const explain = token
    .command('explain')
    .description('show the claims and rights of a token, and why a hub would reject it')
    .argument('[token]', 'the token (default: REJOIN_TOKEN, else read from the input)')
    .option('--config <file>', `file with the hub's settings (default: ${defaultConfigFile}, if it exists)`)
    .option('--json', 'print a JSON object')
  explain.action((given: string | undefined) => runExplain(given, explain.opts(), host))
}

interface MintFlags {
  readonly subject: string
  readonly subscribe?: string[]
  readonly publish?: string[]
  readonly expires: string
  readonly config?: string
  readonly json?: true
}

async function runMint(flags: MintFlags, host: ProgramHost): Promise<void> {
  const { subject, subscribe = [], publish = [] } = flags
  const expiresInMs = readDuration(flags.expires, '--expires')
  const { config } = await loadConfig({ flags: {}, env: host.env, file: flags.config })
  const minted = await mintToken(config.access.jwt ?? [], { subject, subscribe, publish, expiresInMs })
  if (subscribe.length + publish.length === 0) {
    host.stderr.write(
      'rejoin: This token may do nothing. Give it rights: --subscribe <pattern>, --publish <pattern>.\n',
    )
  }
  await createOutput(host).line(flags.json ? JSON.stringify(minted) : minted.token)
}

async function runExplain(
  given: string | undefined,
  flags: { config?: string; json?: true },
  host: ProgramHost,
): Promise<void> {
  const { env, stdin } = host
  const token = (given ?? env.REJOIN_TOKEN ?? (stdin.isTTY ? '' : await wholeInput(stdin))).trim()
  if (token === '') {
    throw new RejoinError('There is no token to explain. Set REJOIN_TOKEN, or send it through a pipe.', {
      code: 'invalid-option',
    })
  }
  const { config } = await loadConfig({ flags: {}, env, file: flags.config })
  const explanation = await explainToken(token, config.access)
  const output = createOutput(host)
  const lines = flags.json ? [JSON.stringify(explanation)] : explanationLines(explanation, Date.now())
  for (const line of lines) await output.line(line)
  if (explanation.verdict === 'rejected') host.exitCode = exitCodes.notAllowed
}

/** The explanation of a token for a person. */
export function explanationLines(explanation: TokenExplanation, now: number): string[] {
  const { kind, verdict, reasons, header, claims, rights, expiresAt } = explanation
  const rows: string[][] = [
    ['verdict', verdicts[verdict]],
    ...reasons.map((reason) => ['because', plainText(reason, 500)]),
    ['kind', kind === 'jwt' ? `JWT, ${plainText(String(header?.alg))}` : kind === 'key' ? 'API key' : 'unknown'],
  ]
  if (rights) {
    rows.push(['subject', plainText(rights.subject)])
    rows.push(['may read', list(rights.subscribe)], ['may publish', list(rights.publish)])
  }
  if (kind !== 'unknown') rows.push(['expires', expiry(kind, expiresAt, now)])
  for (const [name, value] of Object.entries(claims ?? {}))
    rows.push([`claim ${plainText(name, 40)}`, plainText(JSON.stringify(value))])
  return table(rows)
}

const verdicts: Record<TokenExplanation['verdict'], string> = {
  good: 'good: a hub with these settings takes it, unless it was revoked there',
  rejected: 'rejected',
  unchecked: 'not checked: these settings have no access.jwt, so anybody can have written what follows',
}

function list(patterns: readonly string[]): string {
  return patterns.length === 0 ? 'nothing' : patterns.map((pattern) => plainText(pattern)).join(', ')
}

function expiry(kind: TokenExplanation['kind'], expiresAt: number | undefined, now: number): string {
  if (expiresAt === undefined) return kind === 'jwt' ? 'not said' : 'never'
  const awayMs = expiresAt - now
  const words = awayMs > 0 ? `in ${durationWords(awayMs)}` : `${durationWords(-awayMs)} ago`
  // A claim can hold a number that is no date.
  const date = Math.abs(expiresAt) <= 8.64e15 ? new Date(expiresAt).toISOString() : String(expiresAt)
  return `${words} (${date})`
}
