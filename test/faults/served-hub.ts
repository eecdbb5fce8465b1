import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub, type HubOptions, type WindowOptions } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'

/** A hub behind a real server: on the memory log, or on the one that lasts when it is given a folder. */
export async function serveHub(options: ServedHubOptions = {}): Promise<ServedHub> {
  const { window, tamper, directory, port = 0, ...rest } = options
  const kept = window ? { window } : {}
  const log = directory === undefined ? memoryLog(kept) : lmdbLog(directory, kept)
  const hub = await createHub({ log, ...rest })
  const handle = nodeHandler(hub)
  const server = createServer((request, response) => {
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

export interface ServedHubOptions
  extends Pick<HubOptions, 'heartbeatMs' | 'retryMs' | 'hotBytes' | 'limits' | 'environment'> {
  readonly window?: WindowOptions
  /** Where the log is kept. Left out, it is in memory. */
  readonly directory?: string
  /**
   * Where to listen.
   * @defaultValue 0, a free one
   */
  readonly port?: number
  /** Changes a request before the hub sees it, as a bad proxy would. */
  tamper?(request: IncomingMessage): void
}

export interface ServedHub {
  readonly hub: Hub
  readonly port: number
  close(): Promise<void>
}
