import { RejoinError } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Log } from '../../log/contract.ts'

/** What one hub orders every hub of its log to do. */
export type Order =
  | { readonly revoke: Revocation }
  | { readonly disconnect: { readonly connection: string } | { readonly subject: string } }

export interface Revocation {
  readonly subject: string
  /** The id of the one token that is revoked; left out, everything that the subject was given until `at`. */
  readonly jti?: string
  /** When the revocation may be forgotten, in milliseconds since 1970; left out, never. */
  readonly until?: number
  /**
   * Rights that were given until then are revoked, in milliseconds since 1970. When the issuer of tokens has a clock that is ahead,
   * this is the time by its clock: otherwise its last tokens would seem to be newer than the revocation.
   * @defaultValue now
   */
  readonly at: number
}

/** How many hubs have an order. */
export interface Reach {
  /** Hubs that used the log in the last seconds, this one included. */
  readonly nodes: number
  /** Hubs that have carried out the order. */
  readonly confirmed: number
}

/**
 * Passes orders to all hubs of a log. Without it, rights that were revoked on one hub would still be good on the next.
 * Revocations stay in the log until they may be forgotten, so a hub that starts later knows them before its first request.
 */
export interface Orders {
  /**
   * Gives an order that was carried out here to all other hubs. Resolves when all hubs have it, or after a while. Rejects with
   * `overloaded` when there are too many orders.
   */
  give(order: Order): Promise<Reach>
  stop(): void
}

export interface OrdersContext {
  readonly log: Pick<Log, 'orders'>
  readonly environment: Environment
  /** Carries out an order of another hub. */
  carryOut(order: Order): void
}

// How often a hub asks for orders. An order takes about as long to come to all hubs.
const askEveryMs = 1000
// A hub that has not asked for longer is gone, or has lost the log and sends its readers away.
const countedForMs = 5000
const confirmWithinMs = 3000
const confirmEveryMs = 200
// After a failover of the log, an order may have an id that this hub has passed. So all orders are read again this often.
const readAllEveryMs = 60_000
// A hub that reads the order later cannot have the connection.
const disconnectForMs = 60_000

/** Resolves when the orders that are in force have been carried out here. */
export async function createOrders({ log, environment, carryOut }: OrdersContext): Promise<Orders> {
  if (!log.orders) return { give: async () => ({ nodes: 1, confirmed: 1 }), stop: () => undefined }
  const ask = log.orders.bind(log)
  let after = ''
  let known = new Set<string>()
  let readAllIn = readAllEveryMs
  let reach: Reach = { nodes: 1, confirmed: 1 }
  /** Orders that could not be posted, because the log is away. */
  let unsent: Order[] = []
  let stopped = false
  let cancel = environment.after(askEveryMs, fetchOrders)

  async function read(isFirst = false): Promise<void> {
    const isWhole = after === '' || readAllIn <= 0
    if (isWhole) readAllIn = readAllEveryMs
    const seen = new Set<string>()
    let from = isWhole ? '' : after
    for (;;) {
      const { orders } = await ask({ after: from, forMs: countedForMs })
      for (const { id, order } of orders) {
        seen.add(id)
        from = id
        if (known.has(id)) continue
        known.add(id)
        const read = readOrder(order)
        // A connection from before this hub started cannot be here.
        if (read && !(isFirst && 'disconnect' in read)) carryOut(read)
      }
      if (orders.length === 0) break
    }
    if (isWhole) known = seen
    after = from
  }

  async function post(order: Order): Promise<string> {
    const until = 'revoke' in order ? order.revoke.until : environment.now() + disconnectForMs
    const { posted = '' } = await ask({
      after,
      forMs: countedForMs,
      order: JSON.stringify(order),
      ...(until === undefined ? {} : { until }),
    })
    known.add(posted)
    return posted
  }

  function fetchOrders(): void {
    readAllIn -= askEveryMs
    const work = async () => {
      while (unsent.length > 0) {
        await post(unsent[0] as Order)
        unsent = unsent.slice(1)
      }
      await read()
    }
    void work()
      // The log is away. The hub tells its observers by itself.
      .catch(() => undefined)
      .then(() => {
        if (!stopped) cancel = environment.after(askEveryMs, fetchOrders)
      })
  }

  async function confirm(posted: string): Promise<Reach> {
    for (let waitedMs = 0; ; waitedMs += confirmEveryMs) {
      const { nodes, confirmed } = await ask({ after, forMs: countedForMs, reached: posted })
      reach = { nodes, confirmed }
      if (confirmed >= nodes || waitedMs >= confirmWithinMs || stopped) return reach
      await new Promise<void>((resolve) => void environment.after(confirmEveryMs, resolve))
    }
  }

  await read(true)
  return {
    async give(order) {
      try {
        const posted = await post(order)
        await read()
        return await confirm(posted)
      } catch (error) {
        if (error instanceof RejoinError && error.code === 'overloaded') throw error
        // The order is posted when the log is back. Until then, only this hub is known to have it.
        unsent.push(order)
        return { nodes: Math.max(2, reach.nodes), confirmed: 1 }
      }
    },
    stop() {
      stopped = true
      cancel()
    },
  }
}

/** Undefined for an order that this version of the hub does not know. */
function readOrder(text: string): Order | undefined {
  let order: { revoke?: Partial<Revocation>; disconnect?: { connection?: unknown; subject?: unknown } }
  try {
    order = Object(JSON.parse(text))
  } catch {
    return undefined
  }
  const { revoke, disconnect } = order
  if (typeof revoke?.subject === 'string' && typeof revoke.at === 'number') return order as Order
  if (typeof disconnect?.connection === 'string' || typeof disconnect?.subject === 'string') return order as Order
  return undefined
}
