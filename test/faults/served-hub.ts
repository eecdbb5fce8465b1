import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub, type HubOptions, type WindowOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'

/** A hub on the memory log behind a real server on a free port. */
export async function serveHub(options: ServedHubOptions = {}): Promise<ServedHub> {
  const { window, tamper, ...rest } = options
  const hub = await createHub({ log: memoryLog(window ? { window } : {}), ...rest })
  const handle = nodeHandler(hub)
  const server = createServer((request, response) => {
    tamper?.(request)
    handle(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
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

export interface ServedHubOptions extends Pick<HubOptions, 'heartbeatMs' | 'retryMs' | 'hotBytes'> {
  readonly window?: WindowOptions
  /** Changes a request before the hub sees it, as a bad proxy would. */
  tamper?(request: IncomingMessage): void
}

export interface ServedHub {
  readonly hub: Hub
  readonly port: number
  close(): Promise<void>
}
