import type { Environment } from '../../environment.ts'
import type { SubscribeRequest } from '../hub.ts'
import type { Session } from '../read/session.ts'
import { networkOf } from './network.ts'
import type { RetryPolicy } from './retry.ts'

/**
 * Finds clients that return again and again well before the time that they were told (`retry:`), and says how long to send
 * them away for. A client is known by its client id, else by its cursor and its address: many readers behind one address
 * are many clients. A return counts as rapid only when a client of that name has left just before, so readers that return
 * together after a cut, each in its time, are welcome however many they are.
 */
export interface RapidReturns {
  /** For how many milliseconds this reader is sent away; undefined lets it in. Each request is judged once. */
  judge(request: SubscribeRequest): number | undefined
  /** A reader was let in. */
  entered(session: Session, request: SubscribeRequest): void
  left(session: Session, reason: string): void
}

export interface RapidReturnsOptions {
  /** How many rapid returns of one client are let in; one more is for free every two seconds. */
  readonly max: number
  readonly environment: Pick<Environment, 'now' | 'random'>
  readonly retry: Pick<RetryPolicy, 'leastOf'>
}

// A client that is this quick every time is sent away within seconds; a person who reloads a page ten times in a row is not.
const forgivenEveryMs = 2000
const longestWaitMs = 60_000
// The wait doubles so often. A client that slows down is forgiven soon.
const mostDoublings = 6
// Some 3 MB at worst. The oldest go first, and a client that was forgotten is welcome.
const maxClients = 10_000
const maxLeaves = 100

export function createRapidReturns({ max, environment, retry }: RapidReturnsOptions): RapidReturns {
  const clients = new Map<string, Client>()
  const names = new Map<Session, string>()
  const judged = new WeakSet<SubscribeRequest>()

  function clientOf(name: string): Client {
    const client = clients.get(name) ?? { dueAt: [], rapid: 0, asOf: environment.now() }
    // Moved to the end, as the newest.
    clients.delete(name)
    clients.set(name, client)
    for (const oldest of clients.keys()) {
      if (clients.size <= maxClients) break
      clients.delete(oldest)
    }
    return client
  }

  function expect(client: Client, afterMs: number): void {
    // "Well before" is before half of the time: clocks and jitter differ, and nobody is sent away for that.
    client.dueAt.push(environment.now() + afterMs / 2)
    if (client.dueAt.length > maxLeaves) client.dueAt.shift()
  }

  /** Counts one more rapid return, and gives how many there are, those that were forgiven since taken off. */
  function count(client: Client): number {
    const now = environment.now()
    const forgiven = Math.max(0, now - client.asOf) / forgivenEveryMs
    client.asOf = now
    client.rapid = Math.min(Math.max(0, client.rapid - forgiven) + 1, max + mostDoublings)
    return client.rapid
  }

  return {
    judge(request) {
      const name = nameOf(request)
      const client = name === undefined ? undefined : clients.get(name)
      if (!client || judged.has(request)) return undefined
      judged.add(request)
      const dueAt = takeEarliest(client.dueAt)
      if (dueAt === undefined || dueAt <= environment.now()) return undefined
      const over = count(client) - max
      if (over <= 0) return undefined
      const baseMs = retry.leastOf(request.subscription.channels)
      const waitMs = Math.min(longestWaitMs, baseMs * 2 ** Math.ceil(over - 1)) * (1 + environment.random() / 5)
      expect(client, waitMs)
      return Math.round(waitMs)
    },
    entered(session, request) {
      const name = nameOf(request)
      if (name !== undefined) names.set(session, name)
    },
    left(session, reason) {
      const name = names.get(session)
      if (name === undefined) return
      names.delete(session)
      // A client with new rights is right to be back at once.
      if (reason !== 'token-expired') expect(clientOf(name), retry.leastOf(session.subscription.channels))
    },
  }
}

interface Client {
  /** From when on the readers of this name that have left may return. */
  readonly dueAt: number[]
  /** Rapid returns, as of then. */
  rapid: number
  asOf: number
}

/** Readers that nobody could tell from others have no name. */
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
