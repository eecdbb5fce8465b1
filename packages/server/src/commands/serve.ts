import type { LogSource } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'
import type { Announcer } from '../announce/announcer.ts'
import { createAnnouncer } from '../announce.ts'
import type { Config } from '../config/config.ts'
import type { LoadedConfig } from '../config/load.ts'
import { commandWith, fail, type ProgramHost } from '../program-host.ts'
import { type ServeOptions, serve } from '../serve.ts'
import { endInOrder } from './ending.ts'

/** Runs a hub until it is told to end. Resolves when it listens. */
export async function runServe(loaded: LoadedConfig, host: ProgramHost): Promise<void> {
  const { config } = loaded
  refuseUseless(loaded)
  const folder = config.log === 'lmdb' ? config.data : undefined
  const announcer = await createAnnouncer(host, config.logLevel)
  try {
    const ready: Announcer['ready'] = (facts) => announcer.ready({ ...facts, ...(folder ? { folder } : {}) })
    const serving = await serve({
      ...serveOptions(config),
      log: await logOf(config),
      announcer: { ...announcer, ready },
    })
    endInOrder(serving, host, announcer)
  } catch (error) {
    const advice = error instanceof RejoinError && adviceFor(error, nextPort(config.port), folder)
    if (!advice) throw error
    fail(host, `${error.message}\n\n  ${commandWith(advice, host)}\n`)
  }
}

/** What was said on purpose must not be without effect. */
function refuseUseless({ config, values }: LoadedConfig): void {
  const data = values.find(({ setting }) => setting.key === 'data')
  if (config.log === 'memory' && data?.origin.startsWith('--')) {
    throw new RejoinError(
      `The memory log keeps nothing on disk, so it has no use for ${config.data}. Leave out --data.`,
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
  const { heartbeatMs, retryMs, stallTimeoutMs, hotBytes, retain = [], maxReplayEvents, maxReplayAgeMs } = config
  const { cert, key, http2 } = config.tls
  return {
    ...{ port, host, insecure, trustProxy, drainMs, limits, access, metrics, sinkBudgetBytes },
    ...(playground === undefined ? {} : { playground }),
    ...(admin === undefined ? {} : { admin }),
    ...(cert !== undefined && key !== undefined ? { tls: { cert, key, http2 } } : {}),
    hub: {
      ...{ heartbeatMs, retryMs, stallTimeoutMs, hotBytes, retain },
      ...(maxReplayEvents === undefined ? {} : { maxReplayEvents }),
      ...(maxReplayAgeMs === undefined ? {} : { maxReplayAgeMs }),
    },
  }
}

/** Loaded only where it is used: lmdb is a library of its own, and costs a start some milliseconds. */
async function logOf({ log, data, durability, window, windows = {} }: Config): Promise<LogSource> {
  if (log === 'memory') return (await import('@rejoin/hub/memory')).memoryLog({ window, windows })
  return (await import('@rejoin/hub/lmdb')).lmdbLog(data, { window, windows, durability })
}

/** The flags with which it would work; undefined when it would not help to try others. */
function adviceFor({ code, retryable }: RejoinError, port: number, folder: string | undefined): string | undefined {
  if (code === 'address-in-use') return `--port ${port}`
  if (code === 'log-unavailable' && retryable && folder) return `--port ${port} --data ${folder}-2`
  return undefined
}

function nextPort(port: number): number {
  return port < 65_535 ? port + 1 : 4747
}
