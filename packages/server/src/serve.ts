import type { IncomingMessage } from 'node:http'
import { createHub, type Grant, type Hub, type HubOptions, type LimitOptions, type LogSource } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { RejoinError } from '@rejoin/protocol'
import { allowedHosts, oneHost } from './access/hosts.ts'
import { isLoopbackAddress, loopbackOnly } from './access/loopback.ts'
import type { AccessRules } from './access/rules.ts'
import type { Announcer } from './announce/announcer.ts'
import { inTurn } from './chain.ts'
import { createServer } from './http-server.ts'
import { connectionRoom, readerRoom } from './limits/descriptors.ts'
import type { RequestLimits } from './limits/options.ts'
import { createPublishRate, paced } from './limits/publish-rate.ts'
import { keepRoom } from './limits/reader-room.ts'
import { limitRequests } from './limits/request-limits.ts'
import { listen, resolveHost } from './listen.ts'
import type { Middleware } from './middleware.ts'
import { createObservation } from './observe/observe.ts'
import { peerAddress } from './observe/peer-address.ts'
import { ticketPath } from './observe/ticket-path.ts'
import { pageFiles } from './page-files.ts'
import { createLatestNumbers } from './playground/latest-numbers.ts'
import { createPlayground } from './playground/routes.ts'
import { type Pem, type TlsFiles, watchCertificate } from './tls/certificate.ts'
import { version } from './version.ts'

/** Runs a hub, its HTTP interface, what shows it to its operator, and the playground. */
export async function serve(options: ServeOptions = {}): Promise<Serving> {
  const { port = 4747, host = '127.0.0.1', log = memoryLog(), announcer, admin, limits = {} } = options
  const { trustProxy = false, drainMs = 5000 } = options
  const address = await resolveHost(host)
  const isLoopback = isLoopbackAddress(address)
  const rules = rulesOf(options, isLoopback)
  let hubWithRights: Pick<Hub, 'renewRights'> | undefined
  const onKeysChanged = () => hubWithRights?.renewRights()
  const access = rules && (await import('./access/access.ts')).createAccess(rules, { onKeysChanged })
  const certificate = options.tls && watchCertificate(options.tls, { onReload: renewCertificate })

  const latest = (options.playground ?? !access) ? createLatestNumbers() : undefined
  const snapshot = latest ? { snapshot: latest.snapshot(options.hub?.snapshot) } : {}
  const onRevoke: HubOptions['onRevoke'] = (revocation) => {
    const { subject, ...which } = revocation
    access?.revoke(subject, which)
    options.hub?.onRevoke?.(revocation)
  }
  const hub = await createHub({ ...options.hub, ...snapshot, onRevoke, log, limits: hubLimits(limits) })
  hubWithRights = hub
  announcer?.watch(hub)
  const readers = watchReaders(hub)
  const observation = await createObservation({
    ...{ hub, version, announcer, admin, trustProxy, metrics: options.metrics },
    ...(access && { paths: ticketPath }),
  })
  const onReject = observation.rejected

  const playground = latest && createPlayground(hub, latest)
  // Without a token the dashboard is on the admin port alone.
  const hasDashboard = admin?.token !== undefined
  const pages = {
    ...(playground && { '/': 'playground.html' }),
    ...(hasDashboard && { '/dashboard': 'dashboard.html' }),
  }
  const chain: Middleware[] = [oneHost(onReject), isLoopback && !access ? loopbackOnly() : pathAlone]
  if (rules?.hosts?.length) chain.push(allowedHosts(rules.hosts))
  if (access) chain.push(access.middleware)
  chain.push(observation.middleware)
  if (Object.keys(pages).length > 0) chain.push(pageFiles(pages))
  if (playground) chain.push(playground.handle)
  const maxSockets = connectionRoom()
  if (maxSockets) chain.push(keepRoom({ room: readerRoom(maxSockets), retryMs: () => hub.retryMs, onReject }))
  const { sinkBudgetBytes = 65_536 } = options
  const addressOf = (request: IncomingMessage) => peerAddress(request, trustProxy)
  const rate = createPublishRate(limits, { addressOf, onReject, now: Date.now })
  const authorize = rate ? paced(access?.authorize ?? everybody, rate) : access?.authorize
  const toHub = nodeHandler(hub, {
    ...{ trustProxy, sinkBudgetBytes },
    ...(limits.maxBodyBytes !== undefined && { maxBodyBytes: limits.maxBodyBytes }),
    ...(authorize && { authorize }),
  })
  const limited = limitRequests(limits, { onReject }, toHub)
  const tls = certificate && { ...certificate, http2: options.tls?.http2 ?? true }
  // Behind a proxy all connections have its address, and the proxy closes those that say nothing.
  const { maxSilentPerIp = Number.POSITIVE_INFINITY } = limits
  const http = createServer(
    { ...limits, ...(trustProxy && { maxSilentPerIp }), ...(tls && { tls }), maxSockets, onReject },
    inTurn(chain, limited, hub.failed),
  )
  const adminHttp =
    admin?.port === undefined ? undefined : createServer({ ...limits, onReject }, observation.adminHandler)

  function renewCertificate(outcome: { pem: Pem } | { cause: unknown }): void {
    if ('pem' in outcome) http.renew(outcome.pem)
    announcer?.certificate('pem' in outcome ? {} : outcome)
  }

  async function close(withinMs: number): Promise<void> {
    observation.stopping()
    // It goes on answering meanwhile: whoever publishes is served to the end, and whoever asks is told that it stops.
    await hub.drain({ withinMs: Math.min(withinMs, readers.size * letGoEveryMs) })
    await hub.close()
    await observation.close()
    playground?.close()
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
    announcer?.ready({ version, url, ...admins, log: hub.log, ...open })
    return {
      ...{ url, hub, ...admins },
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
   * Where to listen; 0 lets the system choose.
   * @defaultValue 4747
   */
  port?: number
  /**
   * The name or address to listen on. Beyond loopback it needs `access`, or `insecure`.
   * @defaultValue '127.0.0.1'
   */
  host?: string
  /**
   * Where events are kept. In memory a restart is an announced gap; `lmdbLog('./data')` of `@rejoin/hub/lmdb` survives it.
   * @defaultValue memoryLog(), which leaves nothing behind
   */
  log?: LogSource
  /** The rest of what a hub can be told. */
  hub?: Omit<HubOptions, 'log' | 'limits'>
  /**
   * How many readers there may be, and what one request may cost.
   * @defaultValue {}, only what a request may cost
   */
  limits?: LimitOptions & RequestLimits
  /**
   * Bytes that may wait for one reader before it is considered slow, and is served from the log when it reads again.
   * @defaultValue 65536
   */
  sinkBudgetBytes?: number
  /**
   * Serves TLS, with files that are read again when they change.
   * @defaultValue none: plain HTTP
   */
  tls?: TlsFiles & {
    /**
     * Speaks HTTP/2 with clients that can. All streams of a page then share one connection, where HTTP/1 has six.
     * @defaultValue true
     */
    http2?: boolean
  }
  /**
   * Who may do what. There are rules when tokens or keys are believed, or anonymous requests have rights; then the hub may
   * listen beyond loopback, and is no longer closed to what comes from elsewhere.
   * @defaultValue none: everybody on this machine may do everything
   */
  access?: AccessRules
  /**
   * Opens the admin API and `/metrics`: on the same port to whoever shows the token, and on a port of their own, which only
   * this machine reaches.
   * @defaultValue none: there is neither
   */
  admin?: { token?: string; port?: number }
  /**
   * Whether to count what `/metrics` shows, where there is an admin API.
   * @defaultValue true
   */
  metrics?: boolean
  /**
   * Listen beyond loopback although there are no access rules: whoever reaches the address can read and publish
   * everything, and so can every web page those people visit. On loopback it changes nothing, but that `access.cors` may
   * stand alone: the hub is then open to whatever is sent to this machine, as it is beyond it.
   * @defaultValue false
   */
  insecure?: boolean
  /**
   * Whether requests come through a proxy of yours, so that `X-Forwarded-For` can be believed. Set without such a proxy,
   * any client can pretend to be another address, and limits by address are none.
   * @defaultValue false
   */
  trustProxy?: boolean
  /**
   * Whether there is a playground at `/`.
   * @defaultValue true, unless there are access rules
   */
  playground?: boolean
  /**
   * Over how long readers are let go when it closes, at most, in milliseconds. Few readers are let go sooner. Longer spreads
   * their return further, and makes a restart wait.
   * @defaultValue 5000
   */
  drainMs?: number
  /** Told when the server is ready and what becomes of its readers. Left out, the program is silent. */
  announcer?: Announcer
}

export interface Serving {
  /** Without a slash at the end. */
  readonly url: string
  /** Where the admin API is, if it has a port of its own. */
  readonly adminUrl?: string
  readonly hub: Hub
  /** Reads the files of the certificate now. Only there with TLS. */
  readonly reloadCertificate?: () => void
  /** Lets all readers go, over `withinMs` at most, closes the log, then the server. Resolves when no connection is left. */
  close(options?: { withinMs?: number }): Promise<void>
}

// 200 readers a second come back without being noticed; a single one need not wait for its end.
const letGoEveryMs = 5

/** The access rules, if there are any. Throws where there ought to be some. */
function rulesOf({ access, host, insecure }: ServeOptions, isLoopback: boolean): AccessRules | undefined {
  const { jwt = [], keys = [], anonymous, cors = [], hosts = [], cookie } = access ?? {}
  if (jwt.length > 0 || keys.length > 0 || anonymous !== undefined) return access
  if (!isLoopback && !insecure) {
    throw new RejoinError(
      `Refusing to listen on ${host}: there are no access rules, so everyone who reaches it could read and publish ` +
        'everything. Listen on 127.0.0.1, set access rules, or pass --insecure if that is what you want.',
      { code: 'invalid-option' },
    )
  }
  if (cors.length === 0 && hosts.length === 0 && cookie === undefined) return undefined
  if (insecure && cookie === undefined) return { cors, hosts, anonymous: { subscribe: ['*'], publish: ['*'] } }
  throw new RejoinError(
    'access.cors, access.hosts and access.cookie need access rules beside them. Set access.jwt or access.keys, or say in ' +
      'access.anonymous what everybody may do.',
    { code: 'invalid-option' },
  )
}

/** Where there are no rules. */
function everybody(): Grant {
  return { subject: null, subscribe: ['*'], publish: ['*'] }
}

function hubLimits(given: LimitOptions): LimitOptions {
  const { maxConnections, maxPerIp, maxPerSubject, maxOpensPer10s, maxAnswerBytes, maxIncomingBytes } = given
  const memory = { maxAnswerBytes, maxIncomingBytes }
  const limits = Object.entries({ maxConnections, maxPerIp, maxPerSubject, maxOpensPer10s, ...memory })
  return Object.fromEntries(limits.filter(([, limit]) => limit !== undefined))
}

/** Who is here, by the names of their connections. */
function watchReaders(hub: Hub): ReadonlySet<string> {
  const readers = new Set<string>()
  hub.on('connect', ({ connection }) => readers.add(connection))
  hub.on('close', ({ connection }) => readers.delete(connection))
  return readers
}

/** Takes the host out of a target that names one (RFC 9112 §3.2.2), so that all who look at the path see the same. */
function pathAlone(request: IncomingMessage): boolean {
  if (!request.url?.startsWith('/')) request.url = request.url?.replace(/^https?:\/\/[^/?#]*/i, '') || '/'
  return false
}
