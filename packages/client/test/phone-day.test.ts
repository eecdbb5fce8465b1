import { createRandom } from '@rejoin/hub/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect, type TransportName } from '../src/index.ts'
// Here already: its code is loaded in real time, of which none passes in this test.
import '../src/transports/fallbacks.ts'
import { fakeClock } from './support/fake-clock.ts'
import { indexOf, pick, unrulyHub } from './support/unruly-hub.ts'

const dayMs = 12 * 3_600_000
const heartbeatMs = 25_000

// More of them: PHONE_DAYS=100.
const seeds = Array.from({ length: Number(process.env.PHONE_DAYS ?? 2) }, (_, index) => index + 1)

test.each(['a page', 'a worker', 'a page that polls'])(
  'twelve hours of tunnels, sleep and other networks cost %s no event, and no event comes twice',
  { timeout: 120_000 },
  async (where) => {
    for (const seed of seeds) await liveThrough(where, seed)
  },
)

async function liveThrough(where: string, seed: number): Promise<void> {
  const random = createRandom(seed)
  const clock = { ...fakeClock(), random }
  const endsAt = clock.now() + dayMs
  const hub = unrulyHub(random)
  // What a network does to requests is for the phone to say.
  hub.calm()
  const page = where === 'a worker' ? undefined : openPage()
  const transports: TransportName[] = where === 'a page that polls' ? ['long-poll'] : ['fetch', 'long-poll']
  let network: 'up' | 'silent' | 'unreachable' | 'login' = 'up'
  let beatAt = 0
  let isAsleep = false
  const got: unknown[] = []
  const gaps: unknown[] = []
  // Polls that wait for news, and how often what was open has been lost.
  const waiting: (() => void)[] = []
  let losses = 0
  const tally = { episodes: 0, requests: 0 }
  hub.publish()
  const stream = connect('http://hub/events/a', { clock, fetch: request as typeof fetch, from: 'e0', transports })
  onTestFinished(() => stream.close())
  stream.on('message', ({ data }) => got.push(data))
  stream.onSync((gap) => gaps.push(gap))

  await pass(10_000)
  while (clock.now() < endsAt) {
    tally.episodes++
    await pick(random, [tunnel, lift, anotherNetwork, login, sleep, flaps, ...(page ? [cached, hidden] : [])])()
    network = 'up'
    page?.dispatch('online')
    // A connection that hangs is known by two heartbeats, and the wait before the next is half a minute at most.
    await pass(120_000 + random() * 600_000)
    expect(got, `seed ${seed}: ${JSON.stringify(stream.state)}`).toEqual(hub.log.slice(1).map((_, n) => n + 1))
    expect(stream.state, `seed ${seed}`).toMatchObject({ state: 'connected', stale: false })
  }
  expect(gaps).toEqual([])
  expect(hub.lines().most).toBeLessThanOrEqual(1)
  console.log(`${where}, seed ${seed}: ${tally.episodes} episodes, ${tally.requests} requests, ${got.length} events`)
  stream.close()

  async function tunnel(): Promise<void> {
    lose('silent')
    await pass(5000 + random() * 180_000)
  }

  async function lift(): Promise<void> {
    lose('unreachable')
    await pass(1000 + random() * 60_000)
  }

  async function anotherNetwork(): Promise<void> {
    lose('silent')
  }

  async function login(): Promise<void> {
    lose('login')
    await pass(30_000 + random() * 600_000)
  }

  async function flaps(): Promise<void> {
    for (let flap = 0; flap < 10; flap++) {
      losses++
      hub.cut(pick(random, ['end', 'reset']))
      await pass(random() * 8000)
    }
  }

  /** No timer fires, and what arrives meanwhile arrives nowhere. */
  async function sleep(): Promise<void> {
    lose('silent')
    await nap(60_000 + random() * 3_600_000)
    network = 'up'
    page?.dispatch('resume')
  }

  /** The user goes on to another page, and comes back to this one. */
  async function cached(): Promise<void> {
    page?.dispatch('pagehide', true)
    await pass(0)
    expect(hub.lines().now).toBe(0)
    await nap(1000 + random() * 600_000)
    page?.dispatch('pageshow', true)
  }

  async function hidden(): Promise<void> {
    page?.show('hidden')
    lose(pick(random, ['silent', 'unreachable']))
    await pass(random() * 600_000)
    network = 'up'
    await pass(random() * 60_000)
    page?.show('visible')
  }

  function lose(how: typeof network): void {
    network = how
    losses++
    if (how === 'unreachable') hub.cut('reset')
    else hub.hang()
  }

  async function nap(ms: number): Promise<void> {
    isAsleep = true
    await pass(ms)
    isAsleep = false
  }

  /** Time in which events are published, as long as it takes for what arrives to be read. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed <= ms; passed += stepMs) {
      if (random() < 0.1) hub.publish()
      if (clock.now() >= beatAt) {
        hub.beat()
        beatAt = clock.now() + heartbeatMs
      }
      if (isAsleep) clock.freeze(stepMs)
      else clock.advance(stepMs)
      for (const look of waiting.splice(0)) look()
      for (let turn = 0; turn < (isAsleep ? 1 : 3); turn++) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async function request(input: URL, init: { headers: Headers; signal: AbortSignal }): Promise<Response> {
    tally.requests++
    if (network === 'unreachable') throw new TypeError('fetch failed')
    if (network === 'login') return new Response('<h1>Wi-Fi</h1>', { headers: { 'Content-Type': 'text/html' } })
    const { signal } = init
    const before = losses
    // As a hub waits for something to say (§4.14).
    const { searchParams } = input
    const held = clock.now() + Number(searchParams.get('waitMs'))
    const hasNews = () => indexOf(searchParams.get('lastEventId') ?? '') < hub.log.length - 1
    while (clock.now() < held && !hasNews() && !signal.aborted) await new Promise<void>((look) => waiting.push(look))
    if (network === 'up' && losses === before) return (hub.fetch as unknown as typeof request)(input, init)
    signal.throwIfAborted()
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
}

const stepMs = 2000

/** Lets the test be a page, as far as events go. */
function openPage() {
  const window = new EventTarget()
  const document = { visibilityState: 'visible', baseURI: 'http://hub/' }
  vi.stubGlobal('document', document)
  vi.stubGlobal('addEventListener', window.addEventListener.bind(window))
  onTestFinished(() => void vi.unstubAllGlobals())
  return {
    dispatch(type: string, persisted = false) {
      window.dispatchEvent(Object.assign(new Event(type), { persisted }))
    },
    show(visibility: 'visible' | 'hidden') {
      document.visibilityState = visibility
      window.dispatchEvent(new Event('visibilitychange'))
    },
  }
}
