import { stat } from 'node:fs/promises'
import { RejoinError } from '@rejoin/protocol'
import { isLoopbackAddress } from '../access/hosts.ts'
import { rulesOf } from '../access/needed-rules.ts'
import { invalidOption } from '../errors.ts'
import { readCertificate } from '../http/certificate.ts'
import { resolveHost } from '../http/listen.ts'
import { durabilityOf } from './durability.ts'
import { hubOptionsOf, logOptionsOf } from './hub-options.ts'
import { inOneText } from './issue.ts'
import type { LoadedConfig } from './load.ts'
import { logKindOf } from './log-location.ts'

/**
 * Throws when a hub with these settings would not start, with every reason that can be found without opening a port or a log.
 * `rejoin serve` and `rejoin config` both call it, so both reject the same settings.
 */
export async function checkSettings(loaded: LoadedConfig): Promise<void> {
  const problems: string[] = []
  for (const check of [
    uselessFolder,
    uselessLogFlag,
    uselessMdns,
    dataFolder,
    durability,
    hub,
    tls,
    ports,
    access,
    chaos,
  ]) {
    try {
      await check(loaded)
    } catch (error) {
      if (!(error instanceof RejoinError)) throw error
      problems.push(error.message)
    }
  }
  if (problems.length > 0) throw invalidOption(inOneText(problems))
}

/** Rejects a flag without effect: the operator gave it on purpose. */
function uselessFolder({ config, values }: LoadedConfig): void {
  const kind = logKindOf(config.log)
  const isFlag = values.some(({ setting, origin }) => setting.key === 'data' && origin.startsWith('--'))
  if (kind === 'lmdb' || !isFlag) return
  throw invalidOption(
    `The ${kind} log keeps nothing on this disk, so it has no use for ${config.data}. Leave out --data.`,
  )
}

function uselessLogFlag({ config, values }: LoadedConfig): void {
  const kind = logKindOf(config.log)
  const flag = values.find(
    ({ setting: { key }, origin }) => origin.startsWith('--') && logsWith[key]?.includes(kind) === false,
  )
  if (flag) throw invalidOption(`The ${kind} log has no use for ${flag.origin}. Leave it out, or choose another --log.`)
}

/** The logs that use a setting. */
const logsWith: Readonly<Record<string, readonly string[]>> = {
  durability: ['lmdb', 'redis'],
  lockTimeoutMs: ['lmdb'],
  logPrefix: ['redis'],
  replicas: ['redis'],
}

function uselessMdns({ config, values }: LoadedConfig): void {
  const flag = values.find(({ setting, origin }) => setting.key.startsWith('mdns.') && origin.startsWith('--mdns-'))
  if (!flag || config.mdns.enabled) return
  throw invalidOption(`No services are looked for, so ${flag.origin} has no effect. Add --mdns, or leave it out.`)
}

async function dataFolder({ config }: LoadedConfig): Promise<void> {
  if (config.log !== 'lmdb') return
  const entry = await stat(config.data).catch(({ code }: NodeJS.ErrnoException) => code)
  if (entry === 'ENOTDIR') {
    throw invalidOption(
      `data is ${config.data}, which would be inside a file. Name a folder, or a path where there is nothing yet.`,
    )
  }
  if (typeof entry !== 'object' || entry.isDirectory()) return
  throw invalidOption(`data is ${config.data}, which is a file. Name a folder, or a path where there is nothing yet.`)
}

function durability({ config }: LoadedConfig): void {
  const kind = logKindOf(config.log)
  if (kind !== 'memory') durabilityOf(kind, config.durability)
}

/** The hub and its log check their options when they open. A hub in memory opens in milliseconds, and leaves nothing behind. */
async function hub({ config }: LoadedConfig): Promise<void> {
  const [{ createHub }, { memoryLog }] = await Promise.all([import('@rejoin/hub'), import('@rejoin/hub/memory')])
  const { codec, ...options } = logOptionsOf(config)
  // The memory log does not take every format of ids.
  const log = memoryLog({ ...options, ...(config.log === 'memory' && codec && { codec }) })
  const opened = await createHub({ ...hubOptionsOf(config, () => undefined), log })
  await opened.close()
}

function tls({ config }: LoadedConfig): void {
  const { cert, key } = config.tls
  if (cert !== undefined && key !== undefined) readCertificate({ cert, key })
  if ((cert === undefined) === (key === undefined)) return
  const [given, missing] = cert === undefined ? ['key', 'cert'] : ['cert', 'key']
  throw invalidOption(`tls.${given} is set and tls.${missing} is not. Give both, or none for no TLS.`)
}

function ports({ config: { port, admin } }: LoadedConfig): void {
  if (port === 0 || admin?.port !== port) return
  throw invalidOption(`port and admin.port are both ${port}. Give the admin API a port of its own.`)
}

async function access({ config }: LoadedConfig): Promise<void> {
  const rules = rulesOf(config, isLoopbackAddress(await resolveHost(config.host)))
  if (!rules) return
  // Reads every key, and throws for a weak or a missing key.
  const { createAccess } = await import('../access/access.ts')
  createAccess(rules).close()
}

async function chaos({ config }: LoadedConfig): Promise<void> {
  if (!config.chaos) return
  if (!isLoopbackAddress(await resolveHost(config.host))) {
    throw invalidOption(
      `Rejoin does not listen on ${config.host} with --chaos: everyone who reaches it could cut the streams of others and lose ` +
        'their events. Listen on 127.0.0.1, or leave out --chaos.',
    )
  }
  if (config.log === 'memory') return
  throw invalidOption(
    '--chaos loses events on purpose, so it keeps them in memory. Leave out --log, or leave out --chaos.',
  )
}
