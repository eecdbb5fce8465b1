import { spawn } from 'node:child_process'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type LogSource, systemEnvironment } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import type { Log } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { redisLog } from '@rejoin/hub/redis'
import { renderId } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { serve } from 'rejoin'
import { type Certificate, makeCertificate, writeCertificate } from '../../support/certificate.ts'
import { builtModule } from '../../support/paths.ts'
import { type ServerProcess, serverProcess } from '../../support/server-process.ts'
import { tellParent } from '../../support/tell-parent.ts'
import { probeTurns } from './turn-probe.ts'

/** Two servers on one log with many channels, in a process of its own that measures its turns. */
export async function startTurnsProcess(options: TurnsProcessOptions): Promise<TurnsProcess> {
  const args = ['--max-old-space-size=8192', program, JSON.stringify(options)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const server = serverProcess(child, () => child.disconnect())
  const told = () =>
    new Promise<Told>((resolve, reject) => {
      child.once('message', resolve)
      void server.ended.then(({ code, signal }) => reject(new Error(`The server ended with ${signal ?? code}.`)))
    })
  const { filled } = await told()
  const ask = (what: Asked) => {
    const answer = told()
    child.send(what)
    return answer
  }
  return {
    ...server,
    ...(filled as Filled),
    async longestTurn(task) {
      await ask('start')
      await task()
      return (await ask('stop')).longestMs as number
    },
    cpuMs: async () => (await ask('cpu')).cpuMs as number,
  }
}

export interface TurnsProcessOptions {
  readonly log: 'memory' | 'lmdb' | 'redis'
  /** How many channels there are, with an event each. */
  readonly channels: number
  /** Events of the channel whose window is full. */
  readonly full: number
  readonly directory: string
  readonly redisPort?: number
}

export interface TurnsProcess extends ServerProcess, Filled {
  /** The longest turn of the server while a task is done, in ms. */
  longestTurn(task: () => Promise<unknown>): Promise<number>
  /** What it has used of a processor since it was started, in ms. */
  cpuMs(): Promise<number>
}

interface Filled {
  readonly url: string
  readonly adminUrl: string
  /** The same with limits of what a return may replay, and with keys that `keys/*` retains. */
  readonly limitedUrl: string
  /** The ports of the first server over TLS, and of Node's own HTTP/2 server, which answers everything with 404. */
  readonly http2Ports: { readonly hub: number; readonly bare: number }
  /** The first id there is, one in the middle, and the last. */
  readonly ids: readonly string[]
}

type Asked = 'start' | 'stop' | 'cpu'

interface Told {
  readonly filled?: Filled
  readonly longestMs?: number
  readonly cpuMs?: number
}

const program = builtModule('faults/turns/turns-process.ts')

async function serveParent(options: TurnsProcessOptions): Promise<void> {
  const opened = await sourceOf(options).open(systemEnvironment)
  const ids = await fill(opened, options)
  // Both hubs use it, and neither may close it for the other.
  const shared: Log = Object.assign(bound(opened), { close: async () => undefined })
  const log: LogSource = { name: opened.name, open: async () => shared }
  const hub = { retain: ['kept/*'] }
  // The crowds come from one address and with one cursor. What is measured is what a reader costs that is let in.
  const limits = { maxConnections: 100_000, maxOpensPer10s: 100_000, maxRapidReturns: 100_000 }
  const plain = await serve({ log, port: 0, hub, limits, admin: { port: 0 } })
  const replays = { maxReplayEvents: 1_000_000, maxReplayAgeMs: 86_400_000 }
  const limited = await serve({ log, port: 0, limits, hub: { retain: ['keys/*'], ...replays } })
  const certificate = makeCertificate()
  if (!certificate) throw new Error('HTTP/2 needs a certificate, and openssl to make it is missing.')
  const secured = await serve({ log, port: 0, limits, tls: writeCertificate(options.directory, certificate) })
  const bare = await bareServer(certificate)
  const probe = probeTurns()
  const tell = (told: Told) => tellParent(told)
  process.on('message', (asked: Asked) => {
    if (asked === 'stop') void probe.stop().then((longestMs) => tell({ longestMs }))
    else if (asked === 'cpu') tell({ cpuMs: usedMs() })
    else {
      probe.start()
      tell({})
    }
  })
  process.once('disconnect', () => process.exit())
  const http2Ports = { hub: Number(new URL(secured.url).port), bare }
  const filled = { url: plain.url, adminUrl: plain.adminUrl as string, limitedUrl: limited.url, http2Ports, ids }
  tellParent({ filled } satisfies Told)
}

/** The least that a server of HTTP/2 does for a request. */
async function bareServer(certificate: Certificate): Promise<number> {
  const server = createSecureServer({ ...certificate }, (_request, response) => {
    response.writeHead(404)
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

function usedMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** The log's own methods read private fields, so they have to be called on the log itself. */
function bound(log: Log): Log {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(log)).filter(
    (name) => typeof log[name as keyof Log] === 'function' && name !== 'constructor',
  )
  const fields = ['name', 'durability', 'window', 'formats', 'history'] as const
  const bound: object = Object.defineProperties(
    Object.fromEntries(methods.map((name) => [name, (log[name as 'head'] as () => unknown).bind(log)])),
    Object.fromEntries(fields.map((name) => [name, { enumerable: true, get: () => log[name] }])),
  )
  return bound as Log
}

function sourceOf({ log, directory, redisPort = 0, full }: TurnsProcessOptions): LogSource {
  const window = { maxEvents: full, maxAgeMs: 86_400_000 }
  if (log === 'memory') return memoryLog({ window })
  if (log === 'lmdb') return lmdbLog(directory, { window })
  return redisLog(new Redis({ port: redisPort, lazyConnect: true }), { window, onWarning: () => undefined })
}

/** Two thirds of the channels below one prefix, a channel with a full window, and some that retain values. */
async function fill(log: Log, { channels, full }: TurnsProcessOptions): Promise<string[]> {
  const data = 'x'.repeat(100)
  const append = (names: readonly string[], key?: string) =>
    log.append(
      names.map((channel) => ({ channel, type: 'message', data, ...(key === undefined ? {} : { key }) })),
      { token: `${Math.random()}` },
    )
  const ids: string[] = []
  // Each in a commit of its own, as publishers make them; a few hundred are under way at a time.
  for (let made = 0; made < full + 50; made += 250)
    await Promise.all(Array.from({ length: 250 }, () => append(['full'])))
  ids.push(renderId(await log.head(), log))
  for (let made = 0; made < channels; made += 500) {
    const names = Array.from(
      { length: 500 },
      (_, index) => `${(made + index) % 3 === 0 ? 'stock' : 'orders'}/${made + index}`,
    )
    await append(names)
    if (made === 500 * Math.floor(channels / 1000)) ids.push(renderId(await log.head(), log))
  }
  for (let channel = 0; channel < 100; channel += 1) await append([`kept/${channel}`], 'key')
  ids.push(renderId(await log.head(), log))
  return ids
}

// This file is both ends: started as a program, it is the server.
if (process.send && process.argv[1] === program) await serveParent(JSON.parse(process.argv[2] ?? '{}'))
