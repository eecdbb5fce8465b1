import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A webhook for snapshots that never answers, and counts the requests that are open. */
export async function openWebhook(): Promise<SilentWebhook> {
  let [open, most] = [0, 0]
  const server = createServer((_request, response) => {
    open += 1
    most = Math.max(most, open)
    response.once('close', () => {
      open -= 1
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/state`,
    mostOpen: () => most,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

export interface SilentWebhook {
  readonly url: string
  mostOpen(): number
  close(): void
}
