import type { IncomingMessage } from 'node:http'
import type { Grant, Hub, WindowOptions } from '@rejoin/hub'
import { RejoinError } from '@rejoin/protocol'
import { type BrowseFacts, createBrowses } from './browses.ts'
import type { KnownFact } from './feed.ts'
import { createHandler, type MdnsHandler } from './handler.ts'
import { createHealthWatch, type Health } from './health.ts'
import { createMdnsHub } from './mdns-hub.ts'
import { type Network, type OpenNetwork, sameName } from './network.ts'
import type { Service } from './service.ts'
import { allTypes, serviceType, splitInstance } from './service-type.ts'
import { systemTiming, type Timing } from './timing.ts'
import { udpNetwork } from './udp-network.ts'

export interface MdnsOptions {
  /**
   * The hub that events are published to, in the channels `mdns/<type>`. Give the hub `snapshotUrl: browseUrl`, and its
   * log the codec `uuidv7()` when ids are to be UUIDs. When several hubs share a log, give only one of them the source:
   * each source would publish every fact once more.
   * @defaultValue createMdnsHub({ window }), which is closed with the source
   */
  hub?: Hub | undefined
  /**
   * How many events of each type the default hub keeps, and for how long. A reader that was away for longer is told
   * `sync-required`. Without effect when `hub` is given, except on `lingerMs`.
   * @defaultValue { maxEvents: 1000, maxAgeMs: 60000 }
   */
  window?: WindowOptions | undefined
  /**
   * The address of the network interface to look for services on, such as `192.168.1.5`.
   * @defaultValue none: the source listens on all interfaces, and the system chooses where queries go out
   */
  interface?: string | undefined
  /**
   * How long a type is followed after its last reader has left, in milliseconds. A reader that comes back sooner
   * resumes. A reader that comes back later is told `sync-required`, because nobody has watched the type meanwhile.
   * @defaultValue `window.maxAgeMs`, 60000
   */
  lingerMs?: number | undefined
  /**
   * The most service types that are followed at once. Each type costs the network a few queries an hour. A reader of
   * one more type gets 503.
   * @defaultValue 64
   */
  maxTypes?: number | undefined
  /**
   * The most services that are followed of each type, and half of them for one sender. Any machine on the network can
   * announce any number of services. Services beyond the limit are left out, and `status` says so; so are TXT entries
   * beyond 4 KB for each of that many services.
   * @defaultValue 2000
   */
  maxServices?: number | undefined
  /**
   * Says who sent a request and what they may do; null is answered with 401. Readers need the right to read
   * `mdns/_http._tcp`, for example, or `mdns/*`.
   * @defaultValue none: everybody may read everything
   */
  authorize?: ((request: IncomingMessage) => Grant | null | Promise<Grant | null>) | undefined
  /**
   * Whether requests come through your own proxy, so that `X-Forwarded-For` can be trusted.
   * @defaultValue false
   */
  trustProxy?: boolean | undefined
  /**
   * Called when nothing has been heard of the network for 90 s although services are looked for, and when that is over.
   * @defaultValue none
   */
  onHealth?: ((health: Health) => void) | undefined
  /**
   * The link to the network, for tests.
   * @defaultValue UDP multicast on port 5353
   */
  network?: OpenNetwork | undefined
  /**
   * Clock, timers and chance, for tests.
   * @defaultValue those of the platform
   */
  timing?: Timing | undefined
}

export interface Mdns {
  readonly hub: Hub
  /** Follows a type until the watch is closed. Throws `invalid-type`. */
  watch(type: string): Promise<Watch>
  /**
   * One service by its full name, `My NAS._http._tcp.local.`; undefined when it has not answered within `withinMs`, by
   * default 5 s.
   */
  resolve(name: string, options?: { withinMs?: number | undefined }): Promise<Service | undefined>
  /** The health of the source, and the types that it follows. */
  status(): Health & { readonly browses: readonly BrowseFacts[] }
  /** Serves `/v1/mdns/…` on Node's own HTTP server, or as middleware of Express. */
  readonly handler: MdnsHandler
  /** Ends every browse, closes the socket, and closes the hub unless it was given. */
  close(): Promise<void>
}

/** A type that is being followed. The hub has its events on `channel`. */
export interface Watch {
  readonly channel: string
  /** The services that are there, each with the id of its last event. */
  services(): Promise<readonly KnownFact[]>
  /** Leaves the type. It is still followed for other readers, and for `lingerMs` after the last of them. */
  close(): void
}

/** Publishes the services of the local network to a hub, and serves them. Resolves when the socket is open. */
export async function createMdns(options: MdnsOptions = {}): Promise<Mdns> {
  const { timing = systemTiming, maxTypes = 64, maxServices = 2000, onHealth = () => undefined } = options
  const { network: open = udpNetwork({ interface: options.interface }) } = options
  let network: Network | undefined
  const hub = options.hub ?? (await createMdnsHub(options.window && { window: options.window }))
  const lingerMs = options.lingerMs ?? options.window?.maxAgeMs ?? 60_000
  const health = createHealthWatch({ timing, probe: () => network?.ask(anything), onHealth })
  const browses = createBrowses({
    hub,
    timing,
    lingerMs,
    maxTypes,
    maxServices,
    ask: (query) => network?.ask(query),
    onLooking: health.looking,
  })
  try {
    network = await open({ answered: browses.receive, heard: health.heard, failed: health.failed })
  } catch (error) {
    if (!options.hub) await hub.close()
    throw error
  }

  async function resolve(name: string, { withinMs = 5000 } = {}): Promise<Service | undefined> {
    const asked = splitInstance(name)
    if (!asked) throw badName(name)
    const { feed, release } = await browses.take(asked.type)
    const isOver = new Promise<void>((over) => timing.after(withinMs, over)).then(() => true)
    try {
      for (;;) {
        // Listens before it looks, so that a publish after the look ends the wait.
        let stop = (): void => undefined
        const changed = new Promise<boolean>((again) => {
          stop = feed.onChange(() => again(false))
        })
        const found = (await feed.known()).find(({ fact }) => sameName(fact.service.name) === sameName(asked.name))
        if (found?.fact.event === 'resolved') {
          stop()
          return found.fact.service
        }
        const gaveUp = await Promise.race([changed, isOver])
        stop()
        if (gaveUp) return undefined
      }
    } finally {
      release()
    }
  }

  const status = () => ({ ...health.now(), browses: browses.list() })
  const { authorize, trustProxy = false } = options
  const handler = createHandler({ hub, timing, browses, resolve, status, authorize, trustProxy })

  return {
    hub,
    async watch(text) {
      const { channel, feed, release } = await browses.take(serviceType(text))
      let isHeld = true
      return {
        channel,
        services: feed.known,
        close() {
          if (isHeld) release()
          isHeld = false
        },
      }
    },
    resolve,
    status,
    handler,
    async close() {
      health.stop()
      browses.close()
      await network?.close()
      if (!options.hub) await hub.close()
    },
  }
}

/** A query that every responder answers. */
const anything = { questions: [{ name: allTypes.replace(/\.$/, ''), type: 'PTR' as const }], known: [] }

function badName(name: string): RejoinError {
  return new RejoinError(
    `${JSON.stringify(name.slice(0, 120))} is no name of a service. Write it in full, like My NAS._http._tcp.local.`,
    { code: 'invalid-option' },
  )
}
