import { RejoinError } from '@rejoin/protocol'
import { type Command, Option } from 'commander'
import type { Config } from '../../config/config.ts'
import { defaultConfigFile } from '../../config/file.ts'
import { loadConfig } from '../../config/load.ts'
import type { ProgramHost } from '../program-host.ts'

/** The address of the hub that a command calls, and the token that it sends. */
export interface HubAddress {
  /** The address of the hub, without a slash at the end. */
  readonly url: string
  readonly token?: string
}

export interface AddressFlags {
  readonly url?: string
  readonly token?: string
  readonly config?: string
}

/** Adds the flags of every command that calls a hub. */
export function addAddressFlags(command: Command, tokenVariable: 'REJOIN_TOKEN' | 'REJOIN_ADMIN_TOKEN'): Command {
  const flags: [string, string][] = [
    ['--url <address>', 'address of the hub (default: REJOIN_URL, else the address in the settings of this folder)'],
    ['--token <token>', `token or API key; other users of this machine can see flags, so ${tokenVariable} is safer`],
    ['--config <file>', `file with the hub's settings (default: ${defaultConfigFile}, if it exists)`],
  ]
  for (const [flag, help] of flags) command.addOption(new Option(flag, help).helpGroup('Hub:'))
  return command
}

/** The hub that was named by a flag or a variable, else the hub of the settings in this folder. */
export async function hubAddress(flags: AddressFlags, host: ProgramHost): Promise<HubAddress> {
  const { env } = host
  const token = flags.token ?? env.REJOIN_TOKEN
  const named = flags.url ?? env.REJOIN_URL
  const url = named ? checkUrl(named) : publicUrl((await loadConfig({ flags: {}, env, file: flags.config })).config)
  return { url, ...(token ? { token } : {}) }
}

/** Like `hubAddress`, for the admin API, which has a token of its own, and may have a port of its own. */
export async function adminAddress(flags: AddressFlags, host: ProgramHost): Promise<HubAddress> {
  const { env } = host
  const { config } = await loadConfig({ flags: {}, env, file: flags.config })
  const { admin } = config
  const token = flags.token ?? admin?.token
  const named = flags.url ?? env.REJOIN_URL
  const own = admin?.port ? `http://127.0.0.1:${admin.port}` : publicUrl(config)
  return { url: named ? checkUrl(named) : own, ...(token ? { token } : {}) }
}

function publicUrl({ host, port, tls }: Config): string {
  // A hub that listens on every address can be reached on loopback.
  const name = { '0.0.0.0': '127.0.0.1', '::': '::1' }[host] ?? host
  return `${tls.cert === undefined ? 'http' : 'https'}://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** Checks the address of a hub, and removes slashes at its end. */
export function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.search) return url.href.replace(/\/+$/, '')
  throw new RejoinError(
    `The address of the hub is ${JSON.stringify(text)}. Give one that begins with http:// or https://.`,
    {
      code: 'invalid-option',
    },
  )
}

/** Adds advice to an `unauthorized` error: to give a token, or to find out why the hub rejects the token. */
export function withAdvice(error: RejoinError, token: string | undefined): RejoinError {
  if (error.code !== 'unauthorized') return error
  return new RejoinError(`${error.message} ${notLetIn(token)}`, { code: 'unauthorized', cause: error })
}

/** Like `withAdvice`, for an error with the hub's own message, which already says why. */
export function withNextStep(error: RejoinError, token: string | undefined): RejoinError {
  const { code } = error
  if (code !== 'unauthorized' && (code !== 'forbidden' || token === undefined)) return error
  const step = code === 'forbidden' ? 'See what you may do with: rejoin token explain' : nextStep(token)
  const why = error.message.replace(/ (?:Send a (?:valid )?token|Ask the operator for the right)\.$/, '')
  return new RejoinError(`${why} ${step}`, { code, cause: error })
}

/** Why a hub rejects the user, with or without a token, and what to do. */
export function notLetIn(token: string | undefined): string {
  const why = token === undefined ? 'The hub wants to know who you are.' : 'The hub does not take this token.'
  return `${why} ${nextStep(token)}`
}

function nextStep(token: string | undefined): string {
  return token === undefined
    ? 'Give a token: --token, or REJOIN_TOKEN in the environment.'
    : 'See why with: rejoin token explain'
}
