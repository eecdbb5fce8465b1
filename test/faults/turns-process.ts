import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Log, type LogSource, systemEnvironment } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { memoryLog } from '@rejoin/hub/memory'
import { redisLog } from '@rejoin/hub/redis'
import { renderId } from '@rejoin/protocol'
import { Redis } from 'ioredis'
import { serve } from 'rejoin'
import { type ServerProcess, serverProcess } from './server-process.ts'
import { tellParent } from './tell-parent.ts'
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
  return {
    ...server,
    ...(filled as Filled),
    async longestTurn() {
      const answer = told()
      child.send({})
      return (await answer).longestMs as number
    },
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
  /** Since this was last asked, in ms. */
  longestTurn(): Promise<number>
}

interface Filled {
  readonly url: string
  readonly adminUrl: string
  /** The same with limits of what a return may replay. */
  readonly limitedUrl: string
  /** The first id there is, one in the middle, and the last. */
  readonly ids: readonly string[]
}

interface Told {
  readonly filled?: Filled
  readonly longestMs?: number
}

const here = fileURLToPath(import.meta.url)
const program = here.endsWith('.ts') ? fileURLToPath(new URL('dist/turns-process.js', import.meta.url)) : here

async function serveParent(options: TurnsProcessOptions): Promise<void> {
  const opened = await sourceOf(options).open(systemEnvironment)
  const ids = await fill(opened, options)
  // Both hubs use it, and neither may close it for the other.
  const shared: Log = Object.assign(Object.create(opened) as Log, bound(opened), { close: async () => undefined })
  const log: LogSource = { name: opened.name, open: async () => shared }
  const hub = { retain: ['kept/*'] }
  const limits = { maxConnections: 100_000 }
  const plain = await serve({ log, port: 0, hub, limits, admin: { port: 0 } })
  const limited = await serve({ log, port: 0, limits, hub: { maxReplayEvents: 1_000_000, maxReplayAgeMs: 86_400_000 } })
  const probe = probeTurns()
  process.on('message', () => void probe.longest().then((longestMs) => tellParent({ longestMs } satisfies Told)))
  process.once('disconnect', () => process.exit())
  const filled = { url: plain.url, adminUrl: plain.adminUrl as string, limitedUrl: limited.url, ids }
  tellParent({ filled } satisfies Told)
}

/** The log's own methods read private fields, so they have to be called on the log itself. */
function bound(log: Log): Partial<Log> {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(log)).filter(
    (name) => typeof log[name as keyof Log] === 'function' && name !== 'constructor',
  )
  const fields = ['name', 'durability', 'window', 'formats', 'history'] as const
  return Object.defineProperties(
    Object.fromEntries(methods.map((name) => [name, (log[name as 'head'] as () => unknown).bind(log)])),
    Object.fromEntries(fields.map((name) => [name, { enumerable: true, get: () => log[name] }])),
  )
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
if (process.send && process.argv[1] === here) await serveParent(JSON.parse(process.argv[2] ?? '{}'))
