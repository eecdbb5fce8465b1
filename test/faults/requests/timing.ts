import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { createRandom } from '@rejoin/hub/testing'
import { serve } from 'rejoin'

/**
 * Asks the program the same thing in two ways, of which one is nearer to a secret, and compares how long the answers take:
 * keys and tokens that begin like the right one, and channels that exist. The first comparison is of a server that is 20 µs
 * slower in one of the ways, without which a run that finds nothing would say nothing.
 */
export async function runTiming({ seed, probes, onProgress }: TimingOptions): Promise<TimingOutcome[]> {
  const random = createRandom(seed)
  const text = (length: number) => Array.from({ length }, () => letters[Math.floor(random() * letters.length)]).join('')
  const [key, other, adminToken] = [text(48), text(48), text(48)]
  const server = await serve({
    port: 0,
    admin: { token: adminToken },
    access: {
      keys: [
        { name: 'owner', sha256: sha256(key), subscribe: ['*'], publish: ['*'] },
        { name: 'other', sha256: sha256(other), subscribe: ['open/*'] },
      ],
    },
  })
  const slow = await serveSlowly()
  const ask = (path: string, token: string) =>
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const outcomes: TimingOutcome[] = []

  async function compare(what: string, port: number, status: number, near: () => string, far: () => string) {
    outcomes.push({ what, ...(await measure({ port, status, probes, near, far, random })) })
    onProgress?.(what)
  }

  try {
    for (let index = 100; index < 200; index += 1) await server.hub.publish(`private/${index}`, { text: 'x' })
    const port = Number(new URL(server.url).port)
    await compare(
      'control',
      slow.port,
      200,
      () => ask('/slow', text(8)),
      () => ask('/fast', text(8)),
    )
    const begins = (secret: string) => secret.slice(0, 40) + text(8)
    await compare(
      'API keys',
      port,
      401,
      () => ask('/poll/a', begins(key)),
      () => ask('/poll/a', text(48)),
    )
    const admin = '/admin/channels'
    await compare(
      'admin tokens',
      port,
      404,
      () => ask(admin, begins(adminToken)),
      () => ask(admin, text(48)),
    )
    const channel = (least: number) => `/poll/private/${least + Math.floor(random() * 100)}`
    // Names of one length: those that are there, and those that are not.
    await compare(
      'channels',
      port,
      403,
      () => ask(channel(100), other),
      () => ask(channel(500), other),
    )
    return outcomes
  } finally {
    await server.close({ withinMs: 0 })
    await slow.close()
  }
}

export interface TimingOptions {
  readonly seed: number
  /** Of each of the two ways, for each of the comparisons. */
  readonly probes: number
  onProgress?(what: string): void
}

export interface TimingOutcome {
  readonly what: string
  /** Mean times, in µs, without the slowest twentieth of all: those were held up by something else. */
  readonly nearUs: number
  readonly farUs: number
  /** By Welch. */
  readonly t: number
}

/** What dudect takes for the sign of a difference; by chance alone one run in 100,000 gets there. */
export const telling = 4.5

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
const keptShare = 0.95

function sha256(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

async function serveSlowly() {
  const server = createServer((request, response) => {
    const until = performance.now() + (request.url === '/slow' ? 0.02 : 0)
    while (performance.now() < until);
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise<unknown>((resolve) => server.close(resolve).closeAllConnections()),
  }
}

interface Measurement extends Pick<TimingOptions, 'probes'> {
  readonly port: number
  /** With which each has to be answered. */
  readonly status: number
  near(): string
  far(): string
  random(): number
}

async function measure({ port, status, probes, near, far, random }: Measurement) {
  const socket = connect(port, '127.0.0.1').setNoDelay()
  await once(socket, 'connect')

  async function timeOf(request: string): Promise<number> {
    const answered = once(socket, 'data')
    const since = process.hrtime.bigint()
    socket.write(request)
    const [part] = await answered
    const took = Number(process.hrtime.bigint() - since) / 1000
    if (!String(part).startsWith(`HTTP/1.1 ${status} `)) throw new Error(`Not ${status}: ${String(part).slice(0, 200)}`)
    return took
  }

  const nearUs: number[] = []
  const farUs: number[] = []
  // Until both ways are compiled, and then in an order that nothing else can follow.
  for (let index = 0; index < 2 * warmUps; index += 1) await timeOf(index % 2 === 0 ? near() : far())
  while (nearUs.length < probes || farUs.length < probes) {
    const isNear = nearUs.length < probes && (farUs.length >= probes || random() < 0.5)
    const took = await timeOf(isNear ? near() : far())
    if (isNear) nearUs.push(took)
    else farUs.push(took)
  }
  socket.destroy()
  const longest = [...nearUs, ...farUs].sort((one, another) => one - another)[
    Math.floor(2 * probes * keptShare)
  ] as number
  return welch(
    nearUs.filter((us) => us <= longest),
    farUs.filter((us) => us <= longest),
  )
}

const warmUps = 1000

function welch(near: readonly number[], far: readonly number[]): Omit<TimingOutcome, 'what'> {
  const [one, other] = [momentsOf(near), momentsOf(far)]
  const t = (one.mean - other.mean) / Math.sqrt(one.variance / near.length + other.variance / far.length)
  return { nearUs: one.mean, farUs: other.mean, t }
}

function momentsOf(values: readonly number[]): { mean: number; variance: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1)
  return { mean, variance }
}
