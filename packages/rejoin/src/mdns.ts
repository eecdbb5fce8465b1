import type { IncomingMessage, RequestListener } from 'node:http'
import type { Grant, Hub, HubOptions } from '@rejoin/hub'
import type { Route } from './http/routes.ts'

export interface MdnsSettings {
  /**
   * The address of the network interface on which to look for services.
   * @defaultValue the program listens on all interfaces, and the system chooses where queries go out
   */
  readonly interface?: string | undefined
  /**
   * Events that are kept for each service type. With fewer, a reader that returns late is told of a gap sooner.
   * @defaultValue 1000
   */
  readonly maxEvents?: number | undefined
  /**
   * Age at which an event is dropped, in milliseconds. The source also follows a type for this long after its last reader left.
   * @defaultValue 60000
   */
  readonly maxAgeMs?: number | undefined
}

/** The services of the local network, beside the program's own hub and under the same access rules. */
export interface MdnsSource {
  /** The source's own hub, which serves its readers. */
  readonly hub: Hub
  readonly routes: readonly Route[]
  close(): Promise<void>
}

export interface MdnsContext {
  /** The options that hold for the readers of the program's own hub. */
  readonly hub: Pick<HubOptions, 'heartbeatMs' | 'retryMs' | 'stallTimeoutMs' | 'limits'>
  readonly authorize: ((request: IncomingMessage) => Grant | null | Promise<Grant | null>) | undefined
  readonly trustProxy: boolean
  warned(message: string): void
}

/** Loads `@rejoin/mdns`, which nothing else needs, and opens its socket. */
export async function openMdns(settings: MdnsSettings, context: MdnsContext): Promise<MdnsSource> {
  const { createMdns, createMdnsHub } = await import('@rejoin/mdns')
  const { maxEvents = 1000, maxAgeMs = 60_000 } = settings
  const { authorize, trustProxy, warned } = context
  const hub = await createMdnsHub({ ...context.hub, window: { maxEvents, maxAgeMs } })
  const mdns = await createMdns({
    hub,
    lingerMs: maxAgeMs,
    trustProxy,
    ...(settings.interface === undefined ? {} : { interface: settings.interface }),
    ...(authorize ? { authorize } : {}),
    onHealth: ({ healthy }) => warned(healthy ? heardAgain : notHeard),
  }).catch(async (error) => {
    await hub.close()
    throw error
  })
  return {
    hub,
    routes: mdnsRoutes(mdns.handler),
    async close() {
      await mdns.close()
      await hub.close()
    },
  }
}

const notHeard =
  'mDNS: services are looked for, and nothing was heard of the network for 90 s. Check that --mdns-interface is an address ' +
  'of that network, and that UDP port 5353 is not blocked.'
const heardAgain = 'mDNS: the network is heard again.'

/** The routes of the mDNS source. The source's own handler answers them. */
export function mdnsRoutes(handler: RequestListener): Route[] {
  return ['events', 'subscribe', 'browse', 'discover', 'resolve', 'status'].map((name) => ({
    method: 'GET',
    path: `/v1/mdns/${name}`,
    open: 'to-all',
    handle: () => ({ handOver: handler }),
  }))
}
