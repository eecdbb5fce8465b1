import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createHub, type Hub, type LogSource } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { RejoinError } from '@rejoin/protocol'
import { isLoopbackAddress, loopbackOnly } from './access/loopback.ts'
import type { Announcer } from './announce/announcer.ts'
import { listen, resolveHost } from './listen.ts'
import type { Middleware } from './middleware.ts'
import { createPlayground } from './playground/routes.ts'
import { refuseMethod } from './refusal.ts'
import { requestTarget } from './request-target.ts'
import { version } from './version.ts'

/** Runs a hub, its HTTP interface and the playground. */
export async function serve(options: ServeOptions = {}): Promise<Serving> {
  const { port = 4747, host = '127.0.0.1', log = memoryLog(), insecure = false, announcer } = options
  const address = await resolveHost(host)
  const isLoopback = isLoopbackAddress(address)
  if (!isLoopback && !insecure) {
    throw new RejoinError(
      `Refusing to listen on ${host}: there are no access rules yet, so everyone who reaches it could read and publish ` +
        'everything. Listen on 127.0.0.1, or pass --insecure if that is what you want.',
      { code: 'invalid-option' },
    )
  }

  const hub = await createHub({ log })
  announcer?.watch(hub)
  const playground = createPlayground()
  const chain: Middleware[] = [health, playground.handle]
  if (isLoopback) chain.unshift(loopbackOnly())
  const server = createServer(serverOptions, handler(chain, nodeHandler(hub)))

  const url = await listen(server, { address, port }).then(
    (openPort) => `http://${host.includes(':') ? `[${host}]` : host}:${openPort}`,
    async (error) => {
      await hub.close()
      throw error
    },
  )
  announcer?.ready({ version, url, log: hub.log, loopbackOnly: isLoopback, access: false })

  return {
    url,
    hub,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      await hub.close()
      playground.close()
      server.closeIdleConnections()
      // Readers that do not take their last bytes must not hold up the end.
      const deadline = setTimeout(() => server.closeAllConnections(), closeTimeoutMs)
      await closed
      clearTimeout(deadline)
    },
  }
}

export interface ServeOptions {
  /**
   * Where to listen; 0 lets the system choose.
   * @defaultValue 4747
   */
  port?: number
  /**
   * The name or address to listen on. Beyond loopback it needs `insecure`.
   * @defaultValue '127.0.0.1'
   */
  host?: string
  /**
   * Where events are kept. In memory a restart is an announced gap; `lmdbLog('./data')` of `@rejoin/hub/lmdb` survives it.
   * @defaultValue memoryLog(), which leaves nothing behind
   */
  log?: LogSource
  /**
   * Listen beyond loopback although there are no access rules: whoever reaches the address can read and publish
   * everything, and so can every web page those people visit. On loopback it changes nothing.
   * @defaultValue false
   */
  insecure?: boolean
  /** Told when the server is ready and what becomes of its readers. Left out, the program is silent. */
  announcer?: Announcer
}

export interface Serving {
  /** Without a slash at the end. */
  readonly url: string
  readonly hub: Hub
  /** Ends every stream, then the server. Resolves when no connection is left. */
  close(): Promise<void>
}

const serverOptions = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  // Node looks for both only this often, by default every 30 s.
  connectionsCheckingInterval: 5000,
}

const closeTimeoutMs = 2000

function health(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  if (requestTarget(request).path !== '/healthz') {
    next()
  } else if (request.method !== 'GET' && request.method !== 'HEAD') {
    refuseMethod(response, 'GET')
  } else {
    response.writeHead(200, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' })
    response.end(JSON.stringify({ status: 'ok', version }))
  }
}

/** Hands a request along the chain, and to the last one what nobody has answered. */
function handler([first, ...rest]: Middleware[], last: RequestListener): RequestListener {
  if (!first) return (request, response) => last(request, response)
  const others = handler(rest, last)
  return (request, response) => first(request, response, () => others(request, response))
}
