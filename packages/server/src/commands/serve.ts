import { RejoinError } from '@rejoin/protocol'
import type { Announcer } from '../announce/announcer.ts'
import { createAnnouncer } from '../announce.ts'
import type { Config } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { logKindOf, shownPlace } from '../config/log-place.ts'
import { commandWith, fail, type ProgramHost } from '../program-host.ts'
import { type ServeOptions, serve } from '../serve.ts'
import { endInOrder } from './ending.ts'
import { logSourceOf } from './log-source.ts'

/** Runs a hub until it is told to end. Resolves when it listens. */
export async function runServe(loaded: LoadedConfig, host: ProgramHost): Promise<void> {
  const { config } = loaded
  refuseUseless(loaded)
  const folder = config.log === 'lmdb' ? config.data : undefined
  const address = logKindOf(config.log) === 'redis' ? shownPlace(config.log) : undefined
  const announcer = await createAnnouncer(host, config.logLevel)
  try {
    const where = { ...(folder && { folder }), ...(address && { address }) }
    const ready: Announcer['ready'] = (facts) => announcer.ready({ ...facts, ...where })
    const serving = await serve({
      ...serveOptions(config),
      log: await logSourceOf(config, announcer.warned),
      announcer: { ...announcer, ready },
    })
    endInOrder(serving, host, announcer)
  } catch (error) {
    if (!(error instanceof RejoinError)) throw error
    if (error.code === 'log-unavailable' && address) {
      return fail(host, `Redis at ${address} cannot be used: ${reasonOf(error)}. ${redisAdvice(reasonOf(error))}`)
    }
    const advice = adviceFor(error, nextPort(config.port), folder)
    if (!advice) throw error
    fail(host, `${error.message}\n\n  ${commandWith(advice, host)}\n`)
  }
}

/** What was said on purpose must not be without effect. */
function refuseUseless({ config, values }: LoadedConfig): void {
  const kind = logKindOf(config.log)
  const isFlag = (key: string) => values.some(({ setting, origin }) => setting.key === key && origin.startsWith('--'))
  if (kind !== 'lmdb' && isFlag('data')) {
    throw new RejoinError(
      `The ${kind} log keeps nothing on this disk, so it has no use for ${config.data}. Leave out --data.`,
      { code: 'invalid-option' },
    )
  }
  const { cert, key } = config.tls
  if ((cert === undefined) !== (key === undefined)) {
    const [given, missing] = cert === undefined ? ['key', 'cert'] : ['cert', 'key']
    throw new RejoinError(`tls.${given} is set and tls.${missing} is not. Give both, or none for no TLS.`, {
      code: 'invalid-option',
    })
  }
}

function serveOptions(config: Config): ServeOptions {
  const { port, host, insecure, trustProxy, playground, drainMs, limits, access, admin, metrics, sinkBudgetBytes } =
    config
  const {
    heartbeatMs,
    retryMs,
    retries = {},
    stallTimeoutMs,
    hotBytes,
    retain = [],
    maxReplayEvents,
    maxReplayAgeMs,
  } = config
  const { maxTailSilenceMs, whenDown } = config
  const { cert, key, http2 } = config.tls
  return {
    ...{ port, host, insecure, trustProxy, drainMs, limits, access, metrics, sinkBudgetBytes },
    ...(playground === undefined ? {} : { playground }),
    ...(admin === undefined ? {} : { admin }),
    ...(cert !== undefined && key !== undefined ? { tls: { cert, key, http2 } } : {}),
    hub: {
      ...{ heartbeatMs, retryMs, retries, stallTimeoutMs, hotBytes, retain, maxTailSilenceMs, whenDown },
      ...(maxReplayEvents === undefined ? {} : { maxReplayEvents }),
      ...(maxReplayAgeMs === undefined ? {} : { maxReplayAgeMs }),
    },
  }
}

function reasonOf({ cause, message }: RejoinError): string {
  return (cause instanceof Error ? cause.message : message).replace(/\.+$/, '')
}

function redisAdvice(reason: string): string {
  const isLocked = /^(WRONGPASS|NOAUTH|NOPERM) /.test(reason)
  return isLocked ? 'Check the name and the password in the address.' : 'Start it, or check the address.'
}

/** The flags with which it would work; undefined when it would not help to try others. */
function adviceFor({ code, retryable, cause }: RejoinError, port: number, folder?: string): string | undefined {
  if (code === 'address-in-use') return `--port ${port}`
  // In use by another one. What the file system refuses, it would refuse beside it as well.
  if (code === 'log-unavailable' && retryable && !cause && folder) return `--port ${port} --data ${folder}-2`
  return undefined
}

function nextPort(port: number): number {
  return port < 65_535 ? port + 1 : 4747
}
