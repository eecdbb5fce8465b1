import type { Environment } from '../../environment.ts'
import type { Subscription } from '../live/subscription.ts'
import { networkOf } from './network.ts'
import type { RetryPolicy } from './retry.ts'
import type { RapidVerdict, SubscribeRequest } from './subscribe-request.ts'

/**
 * Finds clients that return again and again well before the time that they were told (`retry:`), and decides how long they wait.
 * A client is known by its client id, else by its cursor and its address. A return is rapid only if a client of that name has left
 * just before. So any number of readers can return together after a cut, each in its time.
 *
 * Many readers behind one address may share a cursor: on a quiet hub, all of them hold the head. A client that is known only by its
 * cursor is therefore never rejected, because its neighbour may be the one in a loop. It is served a few seconds late.
 */
export interface RapidReturns {
  /** By which name the client of a request is known; undefined for a client that cannot be told from others. */
  nameOf(request: SubscribeRequest): string | undefined
  /**
   * Whether to reject the reader or to serve it late, and the wait in milliseconds; undefined serves it now. Judge each request
   * once: this counts a return.
   * @param name - the name of its client
   */
  judge(request: SubscribeRequest, name: string | undefined): RapidVerdict | undefined
  /** A reader of this name was let in. */
  entered(session: ReturningSession, name: string | undefined): void
  left(session: ReturningSession, reason: string): void
}

export interface ReturningSession {
  readonly subscription: Subscription
  /** By which name its client would be known when it returns. A field and no map, because thousands of readers come at once. */
  returnsAs?: string | undefined
}

export interface RapidReturnsOptions {
  /** How many rapid returns of one client are let in. One is forgiven every two seconds. */
  readonly max: number
  readonly environment: Pick<Environment, 'now' | 'random'>
  readonly retry: Pick<RetryPolicy, 'leastOf'>
}

// A client that always returns at once is sent away within seconds. A person who reloads a page ten times in a row is not.
const forgivenEveryMs = 2000
const longestWaitMs = 60_000
// Slows down a loop that awaits its answers, and costs an innocent neighbour no more than that.
const longestDelayMs = 3000
// How often the wait doubles, at most. So a client that slows down is soon forgiven.
const mostDoublings = 6
// Some 3 MB at worst. The oldest clients are forgotten first, and are then let in.
const maxClients = 10_000
const maxLeaves = 100

export function createRapidReturns({ max, environment, retry }: RapidReturnsOptions): RapidReturns {
  const clients = new Map<string, Client>()

  function clientOf(name: string): Client {
    const client = clients.get(name) ?? { dueAt: [], rapid: 0, asOf: environment.now() }
    // Moved to the end, because the first clients are forgotten first.
    clients.delete(name)
    clients.set(name, client)
    for (const oldest of clients.keys()) {
      if (clients.size <= maxClients) break
      clients.delete(oldest)
    }
    return client
  }

  function expect(client: Client, afterMs: number): void {
    // Only a return in the first half of the time is rapid: clocks and jitter differ.
    client.dueAt.push(environment.now() + afterMs / 2)
    if (client.dueAt.length > maxLeaves) client.dueAt.shift()
  }

  /** Counts a rapid return. Returns how many there are, less the forgiven ones. */
  function count(client: Client): number {
    const now = environment.now()
    const forgiven = Math.max(0, now - client.asOf) / forgivenEveryMs
    client.asOf = now
    client.rapid = Math.min(Math.max(0, client.rapid - forgiven) + 1, max + mostDoublings)
    return client.rapid
  }

  return {
    nameOf,
    judge(request, name) {
      const client = name === undefined ? undefined : clients.get(name)
      if (!client) return undefined
      const dueAt = takeEarliest(client.dueAt)
      if (dueAt === undefined || dueAt <= environment.now()) return undefined
      const over = count(client) - max
      if (over <= 0) return undefined
      const baseMs = retry.leastOf(request.subscription.selectors)
      const waitMs = baseMs * 2 ** Math.ceil(over - 1)
      if (!request.client) return { delayMs: Math.min(longestDelayMs, waitMs) }
      const rejectMs = Math.round(Math.min(longestWaitMs, waitMs) * (1 + environment.random() / 5))
      expect(client, rejectMs)
      return { rejectMs }
    },
    entered(session, name) {
      session.returnsAs = name
    },
    left(session, reason) {
      const name = session.returnsAs
      if (name === undefined) return
      session.returnsAs = undefined
      // A client may return at once with new rights.
      if (reason !== 'token-expired') expect(clientOf(name), retry.leastOf(session.subscription.selectors))
    },
  }
}

interface Client {
  /** For each reader of this name that has left: from when on it may return. */
  readonly dueAt: number[]
  /** Rapid returns, as counted at the time `asOf`. */
  rapid: number
  asOf: number
}

function nameOf({ client, reader, start }: SubscribeRequest): string | undefined {
  if (client) return `client ${reader?.subject ?? ''} ${client.id}`
  if (start.from !== 'cursor' || !reader?.ip) return undefined
  return `cursor ${networkOf(reader.ip)} ${start.cursor.slice(0, 128)}`
}

function takeEarliest(times: number[]): number | undefined {
  if (times.length === 0) return undefined
  const earliest = Math.min(...times)
  times.splice(times.indexOf(earliest), 1)
  return earliest
}
