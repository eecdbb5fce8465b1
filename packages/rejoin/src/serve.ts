import { createHub, type Hub, type HubOptions, type LimitOptions, type LogSource } from '@rejoin/hub'
import { coldBytes, createValues } from '@rejoin/hub/internal'
import type { PutIfAbsent } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { allowedHosts, isLoopbackAddress, loopbackOnly, oneHost } from './access/hosts.ts'
import { rulesOf } from './access/needed-rules.ts'
import type { AccessRules } from './access/rules.ts'
import { hintAtAdmin } from './admin/admin-guard.ts'
import type { Chaos } from './chaos/chaos.ts'
import { type Pem, type TlsFiles, watchCertificate } from './http/certificate.ts'
import { inTurn, type Middleware } from './http/chain.ts'
import { createServer } from './http/http-server.ts'
import { listen, resolveHost } from './http/listen.ts'
import { pageRoutes } from './http/page-routes.ts'
import { watchRejections } from './http/rejected-requests.ts'
import type { Route } from './http/routes.ts'
import type { RequestLimits } from './limits/options.ts'
import { connectionRoom, keepRoom, readerRoom } from './limits/reader-room.ts'
import { createPublishRate, limitRequests } from './limits/request-limits.ts'
import type { Logging } from './logging/logging.ts'
import type { MdnsSettings, MdnsSource } from './mdns.ts'
import { createObservation } from './observation.ts'
import { createLatestNumbers } from './playground/latest-numbers.ts'
import { createPlayground } from './playground/routes.ts'
import { probeEndpoint } from './probes.ts'
import { stopTimes } from './stop-times.ts'
import { version } from './version.ts'

/** Runs a hub with its HTTP server, the routes for its operator, and the playground. */
export function serve(options: ServeOptions = {}): Promise<Serving> {
  return serveWith(options)
}

/** Like `serve`, with troubles that tests order. */
export async function serveWith(options: ServeOptions, chaos?: Chaos): Promise<Serving> {
  const { port = 4747, host = '127.0.0.1', log = chaos?.log ?? memoryLog(), logging, admin, limits = {} } = options
  const { trustProxy = false, drainMs = 5000 } = options
  const address = await resolveHost(host)
  const isLoopback = isLoopbackAddress(address)
  const rules = rulesOf(options, isLoopback)
  let hubWithRights: Pick<Hub, 'admin' | 'log'> | undefined
  let mdns: MdnsSource | undefined
  const onKeysChanged = () => {
    hubWithRights?.admin.renewRights()
    mdns?.hub.admin.renewRights()
  }
  // Somebody else's log may not have it.
  const ownValues = createValues(Date.now)
  const putIfAbsent: PutIfAbsent = (...put) => hubWithRights?.log.putIfAbsent?.(...put) ?? ownValues(...put)
  const logClock = async () => hubWithRights?.log.clock?.() ?? Date.now()
  const access =
    rules && (await import('./access/access.ts')).createAccess(rules, { onKeysChanged, putIfAbsent, logClock })
  const certificate = options.tls && watchCertificate(options.tls, { onReload: renewCertificate })

  const latest = (options.playground ?? !access) ? createLatestNumbers() : undefined
  const snapshot = latest ? { snapshot: latest.snapshot(options.hub?.snapshot) } : {}
  const onRevoke: HubOptions['onRevoke'] = (revocation) => {
    const { subject, ...which } = revocation
    access?.revoke(subject, which)
    void mdns?.hub.revoke(subject, which).catch(mdns.hub.port.failed)
    options.hub?.onRevoke?.(revocation)
  }
  const hot = chaos && { hotBytes: coldBytes }
  const hub = await createHub({ ...options.hub, ...hot, ...snapshot, onRevoke, log, limits: hubLimits(limits) })
  hubWithRights = hub
  logging?.watch(hub)
  if (options.mdns) mdns = await openMdns(options.mdns)
  const playground = latest && createPlayground(hub, latest)
  const observation = await createObservation({
    hub,
    version,
    logging,
    admin,
    trustProxy,
    metrics: options.metrics,
    issuersNow: access?.issuersNow,
    routes: publicRoutes(),
  })
  const onReject = observation.rejected
  const chain: Middleware[] = [watchRejections({ trustProxy, tell: observation.rejectedRequest }), oneHost(onReject)]
  if (isLoopback && (!access || chaos)) chain.push(loopbackOnly())
  if (rules?.hosts?.length) chain.push(allowedHosts(rules.hosts))
  if (access) chain.push(access.middleware)
  chain.push(observation.middleware)
  if (playground) chain.push(playground.middleware)
  chain.push(hintAtAdmin(admin))
  const maxSockets = connectionRoom()
  if (maxSockets) chain.push(keepRoom({ room: readerRoom(maxSockets), retryMs: () => hub.admin.retryMs, onReject }))
  const { heartbeatMs = 25_000 } = options.hub ?? {}
  const probes = probeEndpoint({ version, heartbeatMs, trustProxy, onReject })
  chain.push(probes.middleware)
  const { sinkBudgetBytes = 65_536 } = options
  const rateLimit = createPublishRate(limits, { trustProxy, onReject, now: Date.now })
  const overSockets = nodeHandler(hub, {
    trustProxy,
    sinkBudgetBytes,
    ...(limits.maxBodyBytes !== undefined && { maxBodyBytes: limits.maxBodyBytes }),
    ...(access && { authorize: access.authorize }),
    ...(rateLimit && { rateLimit }),
  })
  const faulty = { trustProxy, sinkBudgetBytes, authorize: access?.authorize }
  const toHub = chaos?.streams(hub, faulty, overSockets) ?? overSockets
  const limited = limitRequests(limits, { onReject }, toHub)
  const tls = certificate && { ...certificate, http2: options.tls?.http2 ?? true }
  // Behind a proxy all connections have the proxy's address. The proxy itself closes connections without a request.
  const { maxSilentPerIp = Number.POSITIVE_INFINITY, maxSocketsPerIp = Number.POSITIVE_INFINITY } = limits
  const http = createServer(
    {
      ...limits,
      ...(trustProxy && { maxSilentPerIp, maxSocketsPerIp }),
      ...(tls && { tls }),
      isBehindProxy: trustProxy,
      maxSockets,
      onReject,
    },
    inTurn(chain, limited, hub.port.failed),
  )
  const adminHttp =
    admin?.port === undefined ? undefined : createServer({ ...limits, onReject }, observation.adminHandler)

  function publicRoutes(): Route[] {
    const pages: Record<string, string> = {}
    if (playground) pages['/'] = 'playground.html'
    // Without an admin token, the dashboard is on the admin port alone.
    if (admin?.token !== undefined) pages['/dashboard'] = 'dashboard.html'
    const sources = mdns?.routes ?? []
    const routes = [...(playground?.routes ?? []), ...(chaos?.routes ?? []), ...sources, ...pageRoutes(pages)]
    return access ? [access.ticketRoute, ...routes] : routes
  }

  async function openMdns(settings: MdnsSettings): Promise<MdnsSource> {
    const { heartbeatMs, retryMs, stallTimeoutMs } = options.hub ?? {}
    const given = {
      ...(heartbeatMs && { heartbeatMs }),
      ...(retryMs && { retryMs }),
      ...(stallTimeoutMs && { stallTimeoutMs }),
    }
    try {
      const source = await (await import('./mdns.ts')).openMdns(settings, {
        hub: { ...given, limits: hubLimits(limits) },
        authorize: access?.authorize,
        trustProxy,
        warned: (message) => logging?.warned(message),
      })
      logging?.watch(source.hub)
      return source
    } catch (error) {
      await hub.close()
      throw error
    }
  }

  function renewCertificate(outcome: { pem: Pem } | { cause: unknown }): void {
    if ('pem' in outcome) http.renew(outcome.pem)
    logging?.certificate('pem' in outcome ? {} : outcome)
  }

  async function close(withinMs: number): Promise<void> {
    const readers = [...hub.admin.connections()].length
    const { noticeMs, drainMs, lingerMs } = stopTimes(withinMs, { trustProxy, readers })
    // The server answers until the end: publishers are served, and health checks learn that it stops.
    observation.stopping()
    if (noticeMs > 0) await new Promise((resolve) => setTimeout(resolve, noticeMs))
    const drain = { withinMs: drainMs }
    await Promise.all([hub.drain(drain), mdns?.hub.drain(drain)])
    if (lingerMs > 0) await http.linger(lingerMs)
    await Promise.all([hub.close(), mdns?.close()])
    await observation.close()
    playground?.close()
    probes.close()
    access?.close()
    certificate?.close()
    await Promise.all([http.close(), adminHttp?.close()])
  }

  try {
    const openPort = await listen(http.server, { address, port })
    const url = `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${openPort}`
    const adminPort = adminHttp && (await listen(adminHttp.server, { address: '127.0.0.1', port: admin?.port ?? 0 }))
    const admins = adminPort ? { adminUrl: `http://127.0.0.1:${adminPort}` } : {}
    const open = { loopbackOnly: isLoopback, access: access !== undefined }
    chaos?.started(hub)
    logging?.ready({ version, url, ...admins, log: hub.log, ...open })
    return {
      url,
      hub,
      ...admins,
      ...(certificate && { reloadCertificate: certificate.reload }),
      close: ({ withinMs = drainMs } = {}) => close(withinMs),
    }
  } catch (error) {
    await close(0)
    throw error
  }
}

export interface ServeOptions {
  /**
   * The port to listen on; with 0 the system chooses one.
   * @defaultValue 4747
   */
  port?: number | undefined
  /**
   * The name or address to listen on. Any address but loopback needs `access` rules, or `insecure`.
   * @defaultValue '127.0.0.1'
   */
  host?: string | undefined
  /**
   * The log that keeps the events. With the memory log, a restart is a gap for every reader; events in `lmdbLog('./data')` of
   * `@rejoin/hub/lmdb` survive a restart.
   * @defaultValue memoryLog(), which writes nothing to the disk
   */
  log?: LogSource | undefined
  /**
   * Further options of the hub.
   * @defaultValue {}, the defaults of `createHub`
   */
  hub?: Omit<HubOptions, 'log' | 'limits'> | undefined
  /**
   * Limits on the number of readers, and on the cost of one request.
   * @defaultValue {}, the defaults of each limit: the number of readers has none
   */
  limits?: (LimitOptions & RequestLimits) | undefined
  /**
   * Bytes that may wait for one reader. A reader with more is slow: it gets nothing until it has read them, and then catches up
   * from the log. Each slow reader costs this much memory.
   * @defaultValue 65536
   */
  sinkBudgetBytes?: number | undefined
  /**
   * The files of a certificate, to serve TLS. They are read again when they change.
   * @defaultValue none: plain HTTP
   */
  tls?:
    | (TlsFiles & {
        /**
         * Whether to speak HTTP/2 with clients that can. All streams of a page then share one connection. Over HTTP/1, a browser
         * opens six connections to a host, so six streams at most.
         * @defaultValue true
         */
        http2?: boolean | undefined
      })
    | undefined
  /**
   * Who may do what. Rules count when they accept tokens or keys, or give rights to anonymous requests. With such rules the hub
   * may listen on other addresses than loopback, and requests from other machines and origins are let in by the rules.
   * @defaultValue none: everybody on this machine may do everything
   */
  access?: AccessRules | undefined
  /**
   * Turns on the admin API and `/metrics`. `token` opens them on the public port to requests with this token. `port` opens them
   * on a port of their own, which only this machine reaches.
   * @defaultValue none: there is neither an admin API nor `/metrics`
   */
  admin?: { token?: string | undefined; port?: number | undefined } | undefined
  /**
   * Whether to serve `/metrics`, if there is an admin API.
   * @defaultValue true
   */
  metrics?: boolean | undefined
  /**
   * Listens on other addresses than loopback without access rules. Then everybody who reaches the address can read and publish
   * everything, and so can every web page that they visit. On loopback, `insecure` has an effect only together with `access.cors`
   * or `access.hosts`: they then need no rules beside them, and everybody who reaches the port may do everything.
   * @defaultValue false
   */
  insecure?: boolean | undefined
  /**
   * Whether all requests come through a proxy of yours, so that `X-Forwarded-For` is believed. Without such a proxy, any client
   * could then pretend to have another address, and limits per address would not hold. The server then also leaves idle connections
   * to the proxy, and `close` waits until the proxy has noticed.
   * @defaultValue false
   */
  trustProxy?: boolean | undefined
  /**
   * Whether to serve the playground at `/`.
   * @defaultValue true, unless there are access rules
   */
  playground?: boolean | undefined
  /**
   * Settings of the mDNS source, which serves the services of the local network below `/v1/mdns/`.
   * @defaultValue none: `@rejoin/mdns` is not loaded
   */
  mdns?: MdnsSettings | undefined
  /**
   * The longest time over which `close` spreads the ends of the streams, in milliseconds. With few readers it takes less. Longer
   * spreads their return further, and delays a restart. With `trustProxy` up to 3.5 s of it are for the proxy: `close` waits before
   * the first stream ends, so that the proxy learns of the stop, and after the last one, for the proxy's open connections.
   * @defaultValue 5000
   */
  drainMs?: number | undefined
  /**
   * Receives what the operator reads: that the server is ready, and what happens to its readers.
   * @defaultValue none: the program writes nothing
   */
  logging?: Logging | undefined
}

export interface Serving {
  /** The address of the hub, without a slash at the end. */
  readonly url: string
  /** The address of the admin API, if it has a port of its own. */
  readonly adminUrl?: string
  readonly hub: Hub
  /** Reads the files of the certificate now. Present only with TLS. */
  readonly reloadCertificate?: () => void
  /**
   * Closes all streams within `withinMs` (`drainMs` by default), then the log, then the server. Resolves when no connection is left.
   */
  close(options?: { withinMs?: number | undefined }): Promise<void>
}

function hubLimits(given: LimitOptions): LimitOptions {
  const {
    maxConnections,
    maxPerIp,
    maxPerSubject,
    maxRapidReturns,
    maxOpensPer10s,
    maxStreamBytes,
    maxAnswerBytes,
    maxIncomingBytes,
  } = given
  const memory = { maxStreamBytes, maxAnswerBytes, maxIncomingBytes }
  const limits = Object.entries({ maxConnections, maxPerIp, maxPerSubject, maxRapidReturns, maxOpensPer10s, ...memory })
  return Object.fromEntries(limits.filter(([, limit]) => limit !== undefined))
}
