import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { resetSocket } from '@rejoin/hub/internal'
import { createFlow, type Flow, type FlowToxics } from './flow.ts'

/**
 * A TCP proxy that breaks things on purpose. It understands nothing of what passes through it: it delays, slows down,
 * slices and cuts bytes, and lets connections hang.
 */
export async function openFaultProxy({ target, random, toxics = {} }: FaultProxyOptions): Promise<FaultProxy> {
  const links = new Set<ManagedLink>()
  const deciders = new Set<(link: Link) => void>()
  let current = toxics
  let count = 0
  let cuts = 0
  let rejecting: ReaderRejection | undefined

  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    if (rejecting) {
      reject(client, rejecting)
      return
    }
    const onCut = () => {
      cuts += 1
    }
    const link = createLink(client, { number: count, target, random, toxics: () => current, onCut })
    count += 1
    links.add(link)
    void link.closed.then(() => links.delete(link))
    for (const decide of deciders) decide(link)
    link.start()
  })
  const rejected = new Set<Socket>()

  function reject(client: Socket, how: ReaderRejection): void {
    client.on('error', () => client.destroy())
    if (how === 'reset') {
      resetSocket(client)
      return
    }
    rejected.add(client)
    client.on('close', () => rejected.delete(client))
    // Read, so that it is noticed when the client gives up.
    client.on('end', () => client.destroy()).resume()
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    links,
    get cuts() {
      return cuts
    },
    onLink(decide) {
      deciders.add(decide)
      return () => void deciders.delete(decide)
    },
    get toxics() {
      return current
    },
    set toxics(next) {
      current = next
      for (const link of links) link.changed()
    },
    reject(how = 'reset') {
      rejecting = how
    },
    accept() {
      rejecting = undefined
      for (const client of rejected) resetSocket(client)
    },
    cutAll(how) {
      for (const link of links) link.cut(how)
    },
    async close() {
      rejecting = 'reset'
      for (const link of links) link.destroy()
      for (const client of rejected) client.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export interface FaultProxyOptions {
  readonly target: { readonly port: number; readonly host?: string }
  /** From 0 up to, not including, 1. Seeded, so that a run can be repeated. */
  random(): number
  /**
   * What all connections suffer from the start.
   * @defaultValue none: bytes pass as they are
   */
  readonly toxics?: Toxics
}

/** Per direction: `down` is what the server sends, `up` what the client sends. */
export interface Toxics {
  readonly down?: FlowToxics
  readonly up?: FlowToxics
}

/**
 * How a connection ends. `reset`: both sides get a RST. `fin`: the client sees an orderly end, in the middle of whatever
 * it was reading. `half-open`: nothing passes any more and nobody is told, until the client gives up.
 */
export type Cut = 'reset' | 'fin' | 'half-open'

/**
 * How new connections fail. They are accepted first in any case: a port that was closed for a while might be somebody
 * else's when it is to be opened again. `reset` ends them at once, `silence` lets them wait.
 */
export type ReaderRejection = 'reset' | 'silence'

export interface FaultProxy {
  readonly port: number
  readonly links: ReadonlySet<Link>
  /** Connections that were cut so far. */
  readonly cuts: number
  /** Calls `decide` with every new connection before any byte has passed. Returns a function that ends it. */
  onLink(decide: (link: Link) => void): () => void
  /** What connections without toxics of their own suffer. May be set at any time. */
  toxics: Toxics
  /** Fails new connections until `accept`. Those that exist stay. */
  reject(how?: ReaderRejection): void
  accept(): void
  cutAll(how: Cut): void
  close(): Promise<void>
}

/** One connection through the proxy. */
export interface Link {
  /** Counted from 0 in the order in which they came. */
  readonly number: number
  /** Bytes that have been passed on. */
  readonly passed: { readonly down: number; readonly up: number }
  /** Resolves when both sides are over. */
  readonly closed: Promise<void>
  /** The cut that was made, if any. */
  readonly wasCut: Cut | undefined
  /** Toxics of this connection alone, in place of the proxy's. */
  toxics: Toxics | undefined
  cut(how: Cut): void
  /**
   * Cuts once so many bytes have passed in a direction, and lets no further one pass. Resolves when that has happened. A
   * second call takes the place of the first.
   */
  cutAt(bytes: number, how: Cut, direction?: 'down' | 'up'): Promise<void>
}

interface ManagedLink extends Link {
  start(): void
  changed(): void
  destroy(): void
}

interface LinkOptions {
  readonly number: number
  readonly target: FaultProxyOptions['target']
  random(): number
  toxics(): Toxics
  onCut(): void
}

function createLink(client: Socket, { number, target, random, toxics, onCut }: LinkOptions): ManagedLink {
  const server = connect({ port: target.port, host: target.host ?? '127.0.0.1', allowHalfOpen: true })
  let own: Toxics | undefined
  let wasCut: Cut | undefined
  const flows: Record<'down' | 'up', Flow> = {
    down: createFlow(server, client, { random, toxics: () => (own ?? toxics()).down }),
    up: createFlow(client, server, { random, toxics: () => (own ?? toxics()).up }),
  }

  for (const socket of [client, server]) {
    socket.setNoDelay(true)
    // 'close' follows; what broke on one side breaks on the other.
    socket.on('error', () => (wasCut === 'half-open' ? socket.destroy() : reset()))
  }
  client.on('close', () => {
    // The server of a half-open connection hears nothing before its client gives up, and then it is over.
    flows.down.stop()
    if (client.errored || wasCut === 'half-open') resetSocket(server)
    else server.destroy()
  })
  server.on('close', () => {
    if (wasCut === 'half-open') return
    if (server.errored) resetSocket(client)
    else if (flows.down.isIdle()) client.destroy()
  })
  const over = (socket: Socket) => new Promise<void>((resolve) => void socket.once('close', () => resolve()))
  const closed = Promise.all([over(client), over(server)]).then(() => undefined)

  function reset(): void {
    stop()
    resetSocket(client)
    resetSocket(server)
  }

  function stop(): void {
    flows.down.stop()
    flows.up.stop()
  }

  function changed(): void {
    flows.down.changed()
    flows.up.changed()
  }

  function cut(how: Cut): void {
    if (wasCut) return
    wasCut = how
    onCut()
    if (how === 'reset') {
      reset()
      return
    }
    stop()
    if (how === 'fin') {
      client.end()
      // Else the client could go on sending into a connection that is over.
      client.resume().once('end', () => client.destroy())
      server.destroy()
    } else {
      // Still read, so that the proxy notices when the client gives up; what it says goes nowhere.
      client.resume().once('end', () => client.destroy())
    }
  }

  return {
    number,
    closed,
    get passed() {
      return { down: flows.down.passed, up: flows.up.passed }
    },
    get wasCut() {
      return wasCut
    },
    get toxics() {
      return own
    },
    set toxics(next) {
      own = next
      changed()
    },
    cut,
    cutAt(bytes, how, direction = 'down') {
      return new Promise((resolve) => {
        flows[direction].stopAt(bytes, () => {
          cut(how)
          resolve()
        })
      })
    },
    start() {
      flows.down.start()
      flows.up.start()
    },
    changed,
    destroy() {
      stop()
      client.destroy()
      server.destroy()
    },
  }
}
