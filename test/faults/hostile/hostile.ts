import { fork } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { builtModule } from '../../support/paths.ts'
import { programWindow, startProgram } from '../../support/program.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { type CrowdOptions, openCrowd } from '../crowds/crowd.ts'
import { watchedHistory } from '../history/watched.ts'
import { type LastingHub, openLastingHub } from '../hubs/lasting-hub.ts'
import { throughHttp } from '../recorders/recorders.ts'
import type { Target } from './attack.ts'
import type { Order } from './attacker.ts'
import { plainAttacks } from './attacks.ts'
import { http2Attacks } from './http2.ts'
import { type Cost, type Memory, openMeter } from './meter.ts'
import { openRelay } from './relay.ts'
import { openWebhook } from './webhook.ts'

/**
 * `rejoin serve` with default settings, where everybody may read everything, beside honest readers and a publisher: every
 * attack in turn, and then all of them at once. Attackers are processes of their own, so that they slow nobody down but by
 * what they do to the hub. A webhook for snapshots never answers.
 */
export async function runHostile(options: HostileOptions): Promise<HostileOutcome> {
  const { seed, readers, eventsPerSecond, names, forMs, allForMs, directory, onCost } = options
  const [shop, mallory] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')]
  const deaths: string[] = []
  const webhook = await openWebhook()
  const env = {
    ...accessFor(shop, mallory),
    ...(options.tls && { REJOIN_TLS_CERT: options.tls.cert, REJOIN_TLS_KEY: options.tls.key }),
    REJOIN_SNAPSHOTS: JSON.stringify({ 'hooked/*': { webhook: webhook.url } }),
  }
  const under = ['/bin/sh', '-c', `ulimit -n ${descriptors} && exec "$@"`, 'sh']
  const hub = await openLastingHub({
    random: createRandom(seed),
    start: (port) => startProgram({ directory, port, env, under }),
  })
  // The honest readers and the publisher know no TLS.
  const relay = options.tls && (await openRelay(hub.port))
  const { port: honestPort } = relay ?? hub
  const origin = `http://127.0.0.1:${honestPort}`
  const meter = openMeter({ port: honestPort, running: hub.running }, dirname(directory))
  const history = watchedHistory(options.history, meter.see)
  history.write({ kind: 'run', name: 'hostile', seed, inputs: { readers, eventsPerSecond, forMs } })
  const asShop = { Authorization: `Bearer ${shop}` }

  async function attack(label: string, chosen: readonly string[], ms: number): Promise<void> {
    meter.begin()
    history.write({ kind: 'fault', what: label })
    await makeAttack({ target, names: chosen, forMs: ms })
    history.write({ kind: 'heal' })
    const death = await deathOf(hub)
    if (death) deaths.push(`${label}: ${death}`)
    onCost?.({ attack: label, ...meter.cost(), died: death !== undefined })
    // What is charged to the next attack is not to be what this one has left in the queues.
    await new Promise((resolve) => setTimeout(resolve, options.restMs))
  }

  let target: Target
  try {
    target = {
      port: hub.port,
      key: mallory,
      strength: options.strength ?? 1,
      ...(await fill(origin, asShop, options.channels)),
    }
    const crowd = openCrowd({
      ...options,
      ...{ history, window: programWindow, channels: ['orders/1', 'orders/2', 'stock'], originOf: () => origin },
      ...{ send: throughHttp(origin, 10_000, asShop), resends: 1000, resendAfterMs: 50 },
    })
    await crowd.renewed()
    meter.watchNewcomers(target.oldId)
    const first = await publishOnce(origin, asShop)
    await new Promise((resolve) => setTimeout(resolve, options.restMs))
    const start = meter.memoryNow()
    // What the machine makes of the same readers and the same publisher when nobody attacks: the rest is to be read against it.
    if (forMs > 0) {
      await attack('nothing', [], forMs)
      for (const name of names) await attack(name, [name], forMs)
    }
    if (names.length > 1) await attack('all at once', names, allForMs)
    const repeated = await publishOnce(origin, asShop)
    const end = await meter.rssBelow(1.2 * start.rss, options.recoverMs)
    await crowd.finish()
    meter.close()
    await hub.stop()
    return { deaths, start, end, keptKeys: first === repeated, mostCalls: webhook.mostOpen() }
  } finally {
    meter.close()
    relay?.close()
    webhook.close()
    await hub.abandon()
  }
}

export interface HostileOptions extends Pick<CrowdOptions, 'history' | 'readers' | 'eventsPerSecond' | 'patience'> {
  readonly seed: number
  /** Which attacks. */
  readonly names: readonly string[]
  /** How long each attack takes alone; 0 for all at once and nothing else. */
  readonly forMs: number
  /**
   * Of the numbers that the attacks name, how much is done.
   * @defaultValue 1
   */
  readonly strength?: number
  readonly allForMs: number
  readonly restMs: number
  /** How long memory may take to come back. */
  readonly recoverMs: number
  /** How many channels there are beside those of the honest. */
  readonly channels: number
  readonly directory: string
  /**
   * Files of a certificate, for attacks over HTTP/2.
   * @defaultValue none: a hub without TLS
   */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined
  onCost?(cost: AttackCost): void
}

export interface AttackCost extends Cost {
  readonly attack: string
  readonly died: boolean
}

export interface HostileOutcome {
  /** Attacks that ended the hub, and what it said. */
  readonly deaths: readonly string[]
  /** Memory before the attacks, and when it had time to come back. */
  readonly start: Memory
  readonly end: Memory
  /** Whether a publish from before the attacks, sent again under its key, got its first id. */
  readonly keptKeys: boolean
  /** The most requests to the webhook of snapshots that were open at a time. */
  readonly mostCalls: number
}

export const allAttacks: readonly string[] = plainAttacks.map(({ name }) => name)
export const allHttp2Attacks: readonly string[] = http2Attacks.map(({ name }) => name)

// So few that one address can ask for all of them.
const descriptors = 4096

function accessFor(shop: string, mallory: string): Record<string, string> {
  const sha256 = (key: string) => createHash('sha256').update(key).digest('hex')
  const keys = [
    { name: 'shop', sha256: sha256(shop), publish: ['*'] },
    { name: 'mallory', sha256: sha256(mallory), publish: ['mallory/*'] },
  ]
  return { REJOIN_ACCESS_KEYS: JSON.stringify(keys), REJOIN_ACCESS_ANONYMOUS_SUBSCRIBE: '*' }
}

/** What there is to attack: a channel with 16 MB, one with a full window, and very many. */
async function fill(
  origin: string,
  headers: Record<string, string>,
  channels: number,
): Promise<Omit<Target, 'port' | 'key' | 'strength'>> {
  const post = async (path: string, body: string) => {
    const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body })
    if (response.status !== 201) throw new Error(`Filling the hub: ${response.status} ${await response.text()}`)
    return response.json()
  }
  const { id: oldId } = await post('/publish/oldest', '0')
  for (let n = 0; n < 64; n += 1) await post('/publish/heavy', `${n} ${'x'.repeat(250_000)}`)
  const batch = (events: { channel: string; data: unknown }[]) => post('/publish', JSON.stringify(events))
  const note = 'x'.repeat(150)
  for (let n = 0; n < programWindow.maxEvents; n += 1000) {
    await batch(Array.from({ length: 1000 }, (_, index) => ({ channel: 'long', data: { n: n + index, note } })))
  }
  for (let n = 0; n < channels; n += 1000) {
    await batch(Array.from({ length: 1000 }, (_, index) => ({ channel: `wide/${n + index}`, data: n })))
  }
  await readAll(origin)
  return { oldId, heavy: 'heavy', long: 'long', wide: 'wide/*' }
}

/**
 * The log is a mapped file: a page counts as memory of the hub once somebody has read it, until the system wants it back. Read
 * before the start, no attack is charged for pages that the first honest reader of everything would have touched.
 */
async function readAll(origin: string): Promise<void> {
  for (let had = '', cursor = 'earliest'; had !== cursor; ) {
    had = cursor
    const response = await fetch(`${origin}/poll/*?lastEventId=${cursor}&waitMs=0`)
    cursor = ((await response.json()) as { readonly cursor: string }).cursor
  }
}

async function publishOnce(origin: string, headers: Record<string, string>): Promise<string> {
  const request = { method: 'POST', body: 'once', headers: { ...headers, 'Idempotency-Key': 'before the attacks' } }
  // As publishers do: a connection that was kept may be closed in the moment in which it is used again.
  const response = await fetch(`${origin}/publish/once`, request).catch(() => fetch(`${origin}/publish/once`, request))
  return ((await response.json()) as { id: string }).id
}

async function makeAttack(order: Order): Promise<void> {
  const attacker = fork(program, { stdio: 'inherit' })
  attacker.send(order)
  // One that cannot stop is stopped: what it has opened is closed with it.
  const limit = setTimeout(() => attacker.kill('SIGKILL'), order.forMs + 15_000)
  await once(attacker, 'exit')
  clearTimeout(limit)
}

/** What the hub said when it died, if it did; then it is started again for the next attack. */
async function deathOf(hub: LastingHub<ServerProcess, unknown>): Promise<string | undefined> {
  try {
    hub.running()
    return undefined
  } catch (error) {
    await hub.start()
    return (error as Error).message.slice(0, 300)
  }
}

const program = builtModule('faults/hostile/attacker.ts')
