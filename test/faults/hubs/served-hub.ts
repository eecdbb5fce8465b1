import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub, type HubOptions, type LogSource, type WindowOptions } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { redisLog } from '@rejoin/hub/redis'
import { Redis } from 'ioredis'

/** A hub behind a real server: on the memory log, on the one that lasts when it is given a folder, or on Redis. */
export async function serveHub(options: ServedHubOptions = {}): Promise<ServedHub> {
  const { window, tamper, directory, redis, port = 0, silentMs, ...rest } = options
  const kept = window ? { window } : {}
  const log = redis ? redisOn(redis, kept) : directory === undefined ? memoryLog(kept) : lmdbLog(directory, kept)
  // The shortest that there is: a client heeds what its hub tells it, and these readers are to be back soon.
  // Some are back even sooner than they were told, which is not what is tried here.
  const limits = { maxRapidReturns: Number.POSITIVE_INFINITY, ...rest.limits }
  const hub = await createHub({ log, retryMs: 500, ...rest, limits })
  const handle = nodeHandler(hub)
  const silence = silentMs === undefined ? {} : { headersTimeout: silentMs, connectionsCheckingInterval: silentMs / 4 }
  const server = createServer(silence, (request, response) => {
    tamper?.(request)
    handle(request, response)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return {
    hub,
    port: (server.address() as AddressInfo).port,
    async close() {
      await hub.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function redisOn({ port, answerWithinMs = 5000 }: RedisPlace, kept: { window?: WindowOptions }): LogSource {
  return redisLog(new Redis({ port, lazyConnect: true }), { ...kept, answerWithinMs, onWarning: () => undefined })
}

/** A Redis on this machine. */
export interface RedisPlace {
  readonly port: number
  /** @defaultValue 5000 */
  readonly answerWithinMs?: number
}

export interface ServedHubOptions
  extends Pick<HubOptions, 'heartbeatMs' | 'retryMs' | 'hotBytes' | 'limits' | 'environment'> {
  readonly window?: WindowOptions
  /** Where the log is kept. Left out, it is in memory. */
  readonly directory?: string
  /** The Redis in which the log is kept instead. */
  readonly redis?: RedisPlace
  /**
   * Where to listen.
   * @defaultValue 0, a free one
   */
  readonly port?: number
  /**
   * How long a connection may stay open without a request.
   * @defaultValue 60,000, as in Node
   */
  readonly silentMs?: number
  /** Changes a request before the hub sees it, as a bad proxy would. */
  tamper?(request: IncomingMessage): void
}

export interface ServedHub {
  readonly hub: Hub
  readonly port: number
  close(): Promise<void>
}
