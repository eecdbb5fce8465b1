import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { createRandom } from '@rejoin/hub/testing'
import { startProgram } from '../../support/program.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'
import { createFuzzer, type FuzzedRoute } from './fuzz-request.ts'

/**
 * Sends `rejoin serve`, with access rules, limits, metrics and the admin API, requests that no client sends, over all its
 * routes. It has to answer them without an error of its own, and to be there at the end, without a word about a mistake.
 */
export async function runFuzz({
  seed,
  requests,
  atOnce = 32,
  directory,
  onProgress,
}: FuzzOptions): Promise<FuzzOutcome> {
  const random = createRandom(seed)
  const complaints: string[] = []
  const hub = await openLastingHub({
    random,
    start: (port) =>
      startProgram({
        ...{ directory, port, env: settings },
        onLine: (line) => void (/"level":"(?:error|fatal)"/.test(line) && complaints.push(line)),
      }),
  })
  try {
    const next = createFuzzer({ random, credentials, routes: await routesOf(hub.origin) })
    const statuses = new Map<number, number>()
    const failures: string[] = []
    let sent = 0

    async function sendNext(): Promise<void> {
      while (sent < requests) {
        sent += 1
        if (sent % 10_000 === 0) onProgress?.(sent)
        // Several on one connection are read one after the other, as far as the first ones leave it open.
        const parts = Array.from({ length: random() < 0.1 ? 3 : 1 }, next)
        for (const status of await exchange(hub.port, Buffer.concat(parts))) {
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status >= 500) failures.push(`${status}: ${parts.join('').slice(0, 600)}`)
        }
        hub.running()
      }
    }
    await Promise.all(Array.from({ length: atOnce }, sendNext))

    const alive = await fetch(`${hub.origin}/healthz`)
    await alive.body?.cancel()
    if (alive.status !== 200) failures.push(`It is not well afterwards: ${alive.status}.`)
    await hub.stop()
    return { statuses, failures, complaints }
  } finally {
    await hub.abandon()
  }
}

export interface FuzzOptions {
  readonly seed: number
  readonly requests: number
  /** @defaultValue 32 */
  readonly atOnce?: number
  /** Where the program keeps its events. */
  readonly directory: string
  onProgress?(sent: number): void
}

export interface FuzzOutcome {
  /** How often each status was the answer. */
  readonly statuses: ReadonlyMap<number, number>
  /** Requests that were answered by an error of the program, and what else went wrong. */
  readonly failures: readonly string[]
  /** What the program said about mistakes of its own. */
  readonly complaints: readonly string[]
}

const apiKey = 'a-key-that-is-known-and-long-enough-for-it'
const adminToken = 'the-token-of-the-admin-of-this-run'

const settings = {
  REJOIN_ACCESS_KEYS: JSON.stringify([
    { name: 'fuzz', sha256: createHash('sha256').update(apiKey).digest('hex'), subscribe: ['*'], publish: ['*'] },
  ]),
  REJOIN_ACCESS_JWT: JSON.stringify([{ secret: 'a secret of at least thirty-two bytes' }]),
  REJOIN_ACCESS_ANONYMOUS_SUBSCRIBE: 'public/*',
  REJOIN_ACCESS_COOKIE: 'rejoin',
  REJOIN_CORS_ORIGIN: 'http://localhost',
  REJOIN_ADMIN_TOKEN: adminToken,
  REJOIN_PLAYGROUND: 'true',
  REJOIN_TRUST_PROXY: 'true',
  REJOIN_LIMITS_MAX_CHANNELS: '5',
  REJOIN_LIMITS_MAX_BODY_BYTES: '200000',
  REJOIN_LIMITS_MAX_PUBLISHES_PER_SECOND: '500',
  REJOIN_LIMITS_REQUEST_TIMEOUT_MS: '2000',
  // What is waiting to be written would be a reason to answer late.
  REJOIN_DURABILITY: 'os',
}

const credentials = [
  ...[`Bearer ${apiKey}`, `Bearer ${apiKey}`, `Bearer ${adminToken}`, `bearer  ${apiKey}`, 'Bearer', 'Basic YTpi', ''],
  // alg none, and HS256 by nobody.
  'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ.',
  'Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIiwiZXhwIjo5OTk5OTk5OTk5fQ.c2lnbmF0dXJl',
  `Bearer ${'x'.repeat(9000)}`,
]

/** What the program says it answers, but for what ends it, and what it answers besides. */
async function routesOf(origin: string): Promise<FuzzedRoute[]> {
  const response = await fetch(`${origin}/openapi.json`, { headers: { authorization: `Bearer ${adminToken}` } })
  const { paths } = (await response.json()) as { paths: Record<string, Record<string, unknown>> }
  const documented = Object.entries(paths)
    .filter(([path]) => path !== '/admin/drain' && path !== '/admin/maintenance')
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path })))
  const others = ['/', '/playground/plain', '/playground/cut', '/playground/playground.js', '/nothing']
  return [...documented, { method: 'POST', path: '/ticket' }, ...others.map((path) => ({ method: 'GET', path }))]
}

// A stream's head and every rejection come at once. What is silent for this long waits for more of the request.
const patienceMs = 250

/** The statuses that came back. The connection is reset then: streams do not end, and closed ports would run out. */
function exchange(port: number, bytes: Buffer): Promise<number[]> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1')
    const finish = () => {
      clearTimeout(patience)
      socket.resetAndDestroy()
      resolve([...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)))
    }
    const patience = setTimeout(finish, patienceMs)
    socket.on('data', (part) => {
      text += part.toString('latin1')
      if (/HTTP\/1\.1 [2-5]/.test(text)) setImmediate(finish)
    })
    socket.on('error', finish)
    socket.on('close', finish)
    socket.write(bytes)
  })
}
