import { RejoinError } from '@rejoin/protocol'
import { chaosWarning, serveWithChaos } from '../../chaos/serve-with-chaos.ts'
import { checkSettings } from '../../config/checks.ts'
import type { Config } from '../../config/config.ts'
import { hubOptionsOf, logOptionsOf } from '../../config/hub-options.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { logKindOf, shownLocation } from '../../config/log-location.ts'
import { createLogging } from '../../logging/choose-logging.ts'
import type { Logging } from '../../logging/logging.ts'
import { type ServeOptions, serve } from '../../serve.ts'
import { commandWith, fail, type ProgramHost } from '../program-host.ts'
import { keepHeapSmall } from '../small-heap.ts'
import { endInOrder } from './ending.ts'
import { freePortAfter } from './free-port.ts'
import { flagWords, type GivenFlags } from './given-flags.ts'
import { logSourceOf } from './log-source.ts'

/** Runs a hub until a signal ends it. Resolves when the hub listens. */
export async function runServe(loaded: LoadedConfig, given: GivenFlags, host: ProgramHost): Promise<void> {
  const { config } = loaded
  await checkSettings(loaded)
  keepHeapSmall()
  const folder = config.log === 'lmdb' ? config.data : undefined
  const address = logKindOf(config.log) === 'redis' ? shownLocation(config.log) : undefined
  const logging = await createLogging(host, config.logLevel)
  try {
    const where = { ...(folder && { folder }), ...(address && { address }) }
    let sayReady = (): void => undefined
    const ready: Logging['ready'] = (facts) => {
      sayReady = () => logging.ready({ ...facts, ...where })
    }
    const options = { ...serveOptions(config, logging.warned), logging: { ...logging, ready } }
    if (config.chaos) logging.warned(chaosWarning)
    const serving = config.chaos
      ? await serveWithChaos(options, logOptionsOf(config))
      : await serve({ ...options, log: await logSourceOf(config, logging.warned) })
    endInOrder(serving, host, logging)
    // Said only now: a program that waits for this line may send a signal at once, and that has to end the hub in order.
    sayReady()
  } catch (error) {
    if (!(error instanceof RejoinError)) throw error
    if (error.code === 'log-unavailable' && address) {
      return fail(host, `Redis at ${address} cannot be used: ${reasonOf(error)}. ${redisAdvice(reasonOf(error))}`)
    }
    const changed = await otherFlags(error, config, folder)
    if (!changed) throw error
    fail(host, `${error.message}\n\n  ${commandWith(flagWords(given, changed), host)}\n`)
  }
}

function serveOptions(config: Config, onWarning: (message: string) => void): ServeOptions {
  const { port, host, insecure, trustProxy, playground, drainMs, limits, access, admin, metrics, sinkBudgetBytes } =
    config
  const { cert, key, http2 } = config.tls
  const { enabled: hasMdns, ...mdns } = config.mdns
  return {
    port,
    host,
    insecure,
    trustProxy,
    drainMs,
    limits,
    access,
    metrics,
    sinkBudgetBytes,
    ...(playground === undefined ? {} : { playground }),
    ...(admin === undefined ? {} : { admin }),
    ...(hasMdns ? { mdns } : {}),
    ...(cert !== undefined && key !== undefined ? { tls: { cert, key, http2 } } : {}),
    hub: hubOptionsOf(config, onWarning),
  }
}

function reasonOf({ cause, message }: RejoinError): string {
  return (cause instanceof Error ? cause.message : message).replace(/\.+$/, '')
}

function redisAdvice(reason: string): string {
  if (reason.startsWith('CLOCK ')) return 'Set the clock of its machine right.'
  const isLocked = /^(WRONGPASS|NOAUTH|NOPERM) /.test(reason)
  return isLocked ? 'Check the name and the password in the address.' : 'Start it, or check the address.'
}

/** Flags with which the start would work; undefined when other flags would not help. */
async function otherFlags(
  { code, retryable, cause }: RejoinError,
  { port, host, admin }: Config,
  folder?: string,
): Promise<Record<string, string> | undefined> {
  if (code === 'address-in-use') {
    const { port: taken = port } = cause as { port?: number }
    return taken === admin?.port
      ? { '--admin-port': String(await freePortAfter(taken, '127.0.0.1', [port])) }
      : { '--port': await otherPort() }
  }
  // Another hub uses the folder. An error of the file system has a cause, and would occur in another folder, too.
  if (code === 'log-unavailable' && retryable && !cause && folder) {
    return { '--port': await otherPort(), '--data': `${folder}-2` }
  }
  return undefined

  async function otherPort(): Promise<string> {
    return String(await freePortAfter(port, host, [admin?.port, usualAdminPort]))
  }
}

// The port of the admin API in all our guides.
const usualAdminPort = 4748
