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
   * The hub that events are published to, in the channels `mdns/<type>`. Give it `snapshotUrl: browseUrl`, and `uuidv7()` as
   * the codec of its log when ids are to be UUIDs. Hubs that share a log would each publish what they see: give the source to one.
   * @defaultValue createMdnsHub({ window }), which is closed with the source
   */
  hub?: Hub
  /**
   * What the hub of its own keeps of each type. A reader that was away for longer is told `sync-required`.
   * @defaultValue { maxEvents: 1000, maxAgeMs: 60000 }
   */
  window?: WindowOptions
  /**
   * The address of the network interface to look for services on, such as `192.168.1.5`. Left out, all of them are listened
   * on, and the system chooses where queries go out.
   */
  interface?: string
  /**
   * For how long a type is followed after its last reader has left, in milliseconds. A reader that comes back sooner resumes; one
   * that comes later is told `sync-required`, because nobody has watched meanwhile.
   * @defaultValue the age of the window, 60000
   */
  lingerMs?: number
  /**
   * Service types that are followed at once. Each costs the network a few queries an hour. A reader of one more gets 503.
   * @defaultValue 64
   */
  maxTypes?: number
  /**
   * Services that are followed of each type. Any machine on the network can announce any number; those beyond are passed over,
   * and `status` says so.
   * @defaultValue 2000
   */
  maxServices?: number
  /**
   * Says who sent a request and what they may do; null is answered with 401. The right to read `mdns/_http._tcp`, or
   * `mdns/*`, is what counts. Left out, everybody may read everything.
   */
  authorize?: (request: IncomingMessage) => Grant | null | Promise<Grant | null>
  /**
   * Whether requests come through a proxy of yours, so that `X-Forwarded-For` can be believed.
   * @defaultValue false
   */
  trustProxy?: boolean
  /** Told when nothing has been heard of the network for 90 s although services are looked for, and when that is over. */
  onHealth?: (health: Health) => void
  /** The link to the network; for tests. */
  network?: OpenNetwork
  /** Clock, timers and chance; for tests. */
  timing?: Timing
}

export interface Mdns {
  readonly hub: Hub
  /** Follows a type for as long as the program wants. Throws `invalid-type`. */
  watch(type: string): Promise<Watch>
  /** One service by its full name, `My NAS._http._tcp.local.`; undefined when it has not answered within `withinMs`, 5 s. */
  resolve(name: string, options?: { withinMs?: number }): Promise<Service | undefined>
  /** Whether the network is heard, and what is looked for. */
  status(): Health & { readonly browses: readonly BrowseFacts[] }
  /** Serves `/v1/mdns/…` on Node's own HTTP server, or as middleware of Express. */
  readonly handler: MdnsHandler
  /** Ends every browse and closes the socket, and the hub when it is its own. */
  close(): Promise<void>
}

/** A type that is being followed. Its events are on `channel` of the hub. */
export interface Watch {
  readonly channel: string
  /** The services that are there, each with the id of the event that said so. */
  services(): Promise<readonly KnownFact[]>
  /** The program no longer needs it. */
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
        // Before the look: what is published after it then ends the wait.
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

/** What every responder answers. */
const anything = { questions: [{ name: allTypes.replace(/\.$/, ''), type: 'PTR' as const }], known: [] }

function badName(name: string): RejoinError {
  return new RejoinError(
    `${JSON.stringify(name.slice(0, 120))} is no name of a service. Write it in full, like My NAS._http._tcp.local.`,
    { code: 'invalid-option' },
  )
}
