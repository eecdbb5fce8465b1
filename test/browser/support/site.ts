import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { createHub, type Grant, type Hub, type HubOptions, type LogSource } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'

/**
 * A hub and a page that reads it, on one origin: the modules of the client as they are published, and `page/` of this
 * folder, which writes down what it gets.
 */
export async function openSite(options: SiteOptions = {}): Promise<Site> {
  const { log = amplyKept, heartbeatMs = 1000, retryMs = 500, environment, authorize, intercept, serve } = options
  const requests: SeenRequest[] = []
  let hub = await newHub()
  let handle = newHandle()
  const server = (serve ?? createServer)((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site')
    const file = fileOf(pathname)
    if (file) {
      void sendFile(file, response, pathname.startsWith('/resolved/'))
      return
    }
    requests.push(seen(request))
    if (!intercept?.(request, response)) handle(request, response)
  })
  await listen(server, 0)
  const { port } = server.address() as AddressInfo

  return {
    get hub() {
      return hub
    },
    port,
    requests,
    async stop() {
      await hub.close()
      await closed(server)
    },
    async start() {
      hub = await newHub()
      handle = newHandle()
      await listen(server, port)
    },
    async close() {
      await hub.close()
      if (server.listening) await closed(server)
    },
  }

  function newHub(): Promise<Hub> {
    return createHub({ log: log(), heartbeatMs, retryMs, ...(environment ? { environment } : {}) })
  }

  function newHandle(): RequestListener {
    return nodeHandler(hub, authorize ? { authorize } : {})
  }
}

function amplyKept(): LogSource {
  return memoryLog({ window: { maxEvents: 20_000 } })
}

export interface SiteOptions extends Pick<HubOptions, 'heartbeatMs' | 'retryMs' | 'environment'> {
  /**
   * Opens the log, at the start and after each stop.
   * @defaultValue in memory, with room for everything that a test publishes
   */
  readonly log?: () => LogSource
  readonly authorize?: (request: IncomingMessage) => Grant | null
  /** Answers in place of the hub when it says so, or changes the request on its way there. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean
  /**
   * Makes the server.
   * @defaultValue Node's plain HTTP server
   */
  readonly serve?: (listener: RequestListener) => ClosableServer
}

/** An HTTP/2 server of Node 20 cannot end its connections itself. */
type ClosableServer = Server & { closeAllConnections?(): void }

export interface Site {
  /** The one that runs, another after each start. */
  readonly hub: Hub
  readonly port: number
  /** What was asked of the hub so far, the page's files left out. */
  readonly requests: SeenRequest[]
  /** Ends the hub and its server in order, and keeps the port. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

export interface SeenRequest {
  /** In the time of `performance.now()`. */
  readonly at: number
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly cursor: string | null
}

function seen({ method = '', url = '/', headers }: IncomingMessage): SeenRequest {
  const cursor = headers['last-event-id']
  return { at: performance.now(), method, url, cursor: typeof cursor === 'string' ? cursor : null }
}

const client = new URL('../../../packages/client/dist/', import.meta.url)

const folders: Record<string, URL> = {
  client,
  // The same for workers, which know no import map.
  resolved: client,
  protocol: new URL('../../../packages/protocol/dist/', import.meta.url),
  page: new URL('../page/', import.meta.url),
}

function fileOf(path: string): URL | undefined {
  if (path === '/') return new URL('index.html', folders.page)
  if (path === '/native' || path === '/strict') return new URL(`${path.slice(1)}.html`, folders.page)
  const [, folder, file] = /^\/(client|resolved|protocol|page)\/((?:[a-z0-9-]+\/)*[a-z0-9-]+\.js)$/.exec(path) ?? []
  return folder && file ? new URL(file, folders[folder]) : undefined
}

async function sendFile(file: URL, response: ServerResponse, isResolved: boolean): Promise<void> {
  const type = file.pathname.endsWith('.html') ? 'text/html' : 'text/javascript'
  response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' })
  const text = await readFile(file, 'utf8')
  response.end(isResolved ? text.replaceAll("'@rejoin/protocol'", "'/protocol/index.js'") : text)
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

async function closed(server: ClosableServer): Promise<void> {
  const over = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections?.()
  await over
}
