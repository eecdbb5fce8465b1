import { RejoinError } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import type { Log } from '../../log/contract.ts'

/** What one hub has every hub of its log do. */
export type Order =
  | { readonly revoke: Revocation }
  | { readonly disconnect: { readonly connection: string } | { readonly subject: string } }

/** Rights that were taken back. */
export interface Revocation {
  readonly subject: string
  /** Of the one token that is meant; left out, everything that the subject was given until then. */
  readonly jti?: string
  /** When it may be forgotten, in milliseconds since 1970; left out, never. */
  readonly until?: number
  /** When it was said, in milliseconds since 1970. */
  readonly at: number
}

/** How far an order has come. */
export interface Reach {
  /** Hubs that share the log and were there in the last seconds, this one included. */
  readonly nodes: number
  /** Those of them that have carried it out. */
  readonly confirmed: number
}

/**
 * Passes on what holds for all hubs of a log. Rights that were revoked on one node would otherwise be good on the next one.
 * Revocations stay in the log until they may be forgotten, so a hub that starts later knows them before its first request.
 */
export interface Orders {
  /** Carried out here before. Resolves when all hubs have it, or after a while. Rejects with `overloaded` when there are too many. */
  give(order: Order): Promise<Reach>
  stop(): void
}

export interface OrdersContext {
  readonly log: Pick<Log, 'orders'>
  readonly environment: Environment
  /** What came from another hub. */
  carryOut(order: Order): void
}

// How often a hub asks for orders, and so about how long they take.
const askEveryMs = 1000
// A hub that has not asked for so long is gone, or has lost the log and sends its readers away.
const countedForMs = 5000
const confirmWithinMs = 3000
const confirmEveryMs = 200
// After a failover of the log an order may stand where this hub does not look for new ones. All are read again this often.
const readAllEveryMs = 60_000
// A connection that is to be ended is here now or not at all.
const disconnectForMs = 60_000

/** Resolves when it knows the orders that are in force. */
export async function createOrders({ log, environment, carryOut }: OrdersContext): Promise<Orders> {
  if (!log.orders) return { give: async () => ({ nodes: 1, confirmed: 1 }), stop: () => undefined }
  const ask = log.orders.bind(log)
  let after = ''
  let known = new Set<string>()
  let readAllIn = readAllEveryMs
  let reach: Reach = { nodes: 1, confirmed: 1 }
  /** Could not be posted yet: the log is away. */
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
        // What was to be ended before this hub began is not here.
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
      // The log is away; readiness and the hub's own observers tell of that.
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
        // It is given as soon as the log is back. Until then only this hub is known to have it.
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

/** Undefined for an order of a later version, which this one cannot carry out. */
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
