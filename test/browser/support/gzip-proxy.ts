import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { constants, createGzip } from 'node:zlib'

/** A proxy that compresses whatever passes, against the hub's `no-transform`, and sends each piece on at once. */
export async function openGzipProxy({ port }: { readonly port: number }): Promise<GzipProxy> {
  let streams = 0
  const server = createServer((asked, response) => {
    const { method, url, headers } = asked
    const passed = request({ port, host: '127.0.0.1', method, path: url, headers }, (answer) => {
      const zipped = createGzip({ flush: constants.Z_SYNC_FLUSH })
      if (answer.headers['content-type']?.startsWith('text/event-stream')) streams += 1
      const { 'content-length': _, ...kept } = answer.headers
      response.writeHead(answer.statusCode ?? 502, { ...kept, 'content-encoding': 'gzip' })
      answer.on('error', () => response.destroy())
      zipped.on('error', () => response.destroy())
      answer.pipe(zipped).pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    asked.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    streams: () => streams,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

export interface GzipProxy {
  readonly port: number
  /** Streams that were compressed so far. */
  streams(): number
  close(): Promise<void>
}
