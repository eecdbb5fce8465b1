import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Hub } from '@rejoin/hub'
import { onTestFinished } from 'vitest'
import { load } from './guide-project.ts'

// Of the reader's project, as the hubs of the blocks are.
export const { createHub } = await load<typeof import('@rejoin/hub')>('@rejoin/hub')
export const { memoryLog } = await load<typeof import('@rejoin/hub/memory')>('@rejoin/hub/memory')
export const { nodeHandler } = await load<typeof import('@rejoin/hub/node')>('@rejoin/hub/node')

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
