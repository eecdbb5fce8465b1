import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { onTestFinished } from 'vitest'

/** The site that a guide speaks of: a hub on a free port, closed when the test ends. */
export async function serveSite(hub?: Hub, listener?: RequestListener): Promise<{ hub: Hub; url: string }> {
  const served = hub ?? (await createHub({ log: memoryLog() }))
  const server = createServer(listener ?? nodeHandler(served))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await served.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { hub: served, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

/** Resolves when the next reader of a hub is there. */
export function nextReader(hub: Hub): Promise<void> {
  return new Promise((resolve) => {
    const off = hub.on('connect', () => {
      off()
      resolve()
    })
  })
}
