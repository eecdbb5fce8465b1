import { execFile } from 'node:child_process'
import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Serving, serve } from 'rejoin'
import { program } from '../../support/paths.ts'
import { type ProxyKindName, proxyKinds } from '../../support/proxies/kinds.ts'
import { type FrontProxy, shippedConfiguration, startProxy, versionOf } from '../../support/proxies/proxy.ts'

/** What a proxy with one configuration does to streams. */
export interface Measured {
  readonly proxy: ProxyKindName
  readonly version: string
  readonly configuration: 'plain' | 'ours'
  /** From the request to the first byte of the body; the median of ten streams. */
  readonly firstByteMs: number
  /** From the publish to the arrival of an event, 99 in 100. */
  readonly delayP99Ms: number
  /** What `rejoin doctor --idle` said of each check. */
  readonly states: Readonly<Record<string, string>>
  /** How long it took without the idle stream. */
  readonly fastMs: number
}

export interface Front {
  readonly proxy: ProxyKindName
  readonly configuration: 'plain' | 'ours'
  readonly hub: Serving
  readonly front: FrontProxy
  close(): Promise<void>
}

/** Starts a hub and a proxy in front of it. */
export async function openFront(proxy: ProxyKindName, configuration: Front['configuration']): Promise<Front> {
  const hub = await serve({ port: 0 })
  const text = configuration === 'ours' ? shippedConfiguration(proxy) : proxyKinds[proxy].plain
  const front = await startProxy(proxy, Number(new URL(hub.url).port), text)
  return {
    ...{ proxy, configuration, hub, front },
    async close() {
      await front.stop()
      await hub.close()
    },
  }
}

/** First bytes and delays. One proxy at a time: they would take each other's processor. */
export async function measureTimes({ front, hub }: Front): Promise<Pick<Measured, 'firstByteMs' | 'delayP99Ms'>> {
  const firsts: number[] = []
  for (let n = 0; n < 10; n += 1) {
    const askedAt = performance.now()
    const stream = await open(`${front.url}/events/demo`)
    await firstByte(stream)
    firsts.push(performance.now() - askedAt)
    stream.destroy()
  }
  return { firstByteMs: quantile(firsts, 0.5), delayP99Ms: quantile(await delaysOf(front, hub), 0.99) }
}

/** What the doctor says, once without and once with a stream that carries heartbeats alone. */
export async function consultDoctor({ front }: Front, idle: string): Promise<Pick<Measured, 'states' | 'fastMs'>> {
  const fast = await doctor(front.url, '--json')
  const long = await doctor(front.url, '--json', '--idle', idle)
  const states = Object.fromEntries(long.checks.map(({ name, state }) => [name, state]))
  return { states, fastMs: fast.ms }
}

export { versionOf }

const events = 300
const everyMs = 10

async function delaysOf(front: FrontProxy, { hub }: Serving): Promise<number[]> {
  const stream = await open(`${front.url}/events/timed`)
  const delays: number[] = []
  const all = new Promise<void>((resolve) => {
    let text = ''
    stream.on('data', (piece: string) => {
      text += piece
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const [, sentAt] of lines.map((line) => /^data: ([\d.]+)$/.exec(line) ?? [])) {
        if (sentAt !== undefined) delays.push(performance.now() - Number(sentAt))
      }
      if (delays.length >= events) resolve()
    })
  })
  while (hub.readers('timed') === 0) await sleep(5)
  for (let n = 0; n < events; n += 1) {
    await hub.publish('timed', { data: performance.now() })
    await sleep(everyMs)
  }
  await Promise.race([all, sleep(10_000)])
  stream.destroy()
  if (delays.length < events) throw new Error(`Only ${delays.length} of ${events} events arrived through ${front.url}.`)
  return delays
}

function open(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent: false }, (response) => resolve(response.setEncoding('utf8')))
    request.on('error', reject)
  })
}

function firstByte(stream: IncomingMessage): Promise<void> {
  return new Promise((resolve) => void stream.once('data', () => resolve()))
}

interface DoctorReport {
  readonly ms: number
  readonly checks: readonly { readonly name: string; readonly state: string }[]
}

function doctor(...args: string[]): Promise<DoctorReport> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, 'doctor', ...args], (_error, stdout, stderr) => {
      if (stdout === '') reject(new Error(stderr))
      else resolve(JSON.parse(stdout))
    })
  })
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
