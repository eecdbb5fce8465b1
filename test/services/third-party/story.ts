import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { memoryHistory } from '../../faults/history/history.ts'
import { type StartedHub, startHub } from '../../faults/hubs/hub-process.ts'
import { openLastingHub } from '../../faults/hubs/lasting-hub.ts'
import { type Cut, openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { until } from '../../support/until.ts'
import type { ThirdPartyClient } from './client.ts'

/**
 * One client reads numbers while all goes wrong: its line is cut at random bytes, it is kept away while events are
 * published, the hub is killed, and stopped in order. Returns what the hub has acknowledged and what the client has shown.
 */
export async function runStory({ open }: ThirdPartyClient, { seed, cuts }: StoryOptions): Promise<Story> {
  const directory = mkdtempSync(join(tmpdir(), 'rejoin-third-party-'))
  const random = createRandom(seed)
  const hub = await openLastingHub<StartedHub, never>({
    random: Math.random,
    start: (port) => startHub(memoryHistory(), { directory, port, heartbeatMs: 500, retryMs: 500 }),
  })
  const proxy = await openFaultProxy({ target: hub, random })
  let left = cuts
  proxy.onLink((link) => {
    if (left <= 0) return
    // One in four in the head of the answer or in `hello`.
    const most = random() < 0.25 ? 800 : 6000
    const place = 1 + Math.floor(random() * most)
    // An end in order within the head ends every reader in a browser, for good (docs/reference/browsers.md).
    const how: Cut = random() < 0.5 || place < headBytes ? 'reset' : 'fin'
    void link.cutAt(place, how).then(() => {
      left -= 1
    })
  })
  const publisher = startNumbers(hub.origin)
  // From the start of the log: a first connection that was cut before the client had a cursor would not count as a loss.
  const reader = await open(`http://127.0.0.1:${proxy.port}/events/numbers?cursor=earliest`)
  const numbers = () => reader.told.filter(({ type }) => type === 'message' || type === 'step').map(({ data }) => data)
  const catchesUp = async () => {
    // One that is published from now on, so that whoever has it is connected again.
    await publisher.more(1)
    const goal = publisher.published.at(-1)
    await until(`the client has ${goal}`, () => numbers().includes(goal ?? ''), patienceMs).catch((error) => {
      throw new Error(`${error.message} ${JSON.stringify(situation())}`)
    })
  }
  /** For a failure: the client may have given up, or may wait on a connection on which nothing comes. */
  const situation = () => ({
    stopped: reader.stopped,
    lastTold: reader.told.slice(-3),
    links: [...proxy.links].map(({ number, passed, wasCut }) => ({ number, passed, wasCut })),
  })

  try {
    await until(`${cuts} cuts are made`, () => left <= 0, patienceMs)
    await catchesUp()

    proxy.reject()
    proxy.cutAll('reset')
    const before = publisher.published.length
    await until('events are published while it is away', () => publisher.published.length >= before + 50, patienceMs)
    proxy.accept()
    await catchesUp()

    await hub.kill()
    await hub.start()
    await publisher.more(20)
    await catchesUp()

    await hub.stop()
    await hub.start()
    await publisher.more(20)

    const published = await publisher.finish()
    await until('the client has the last', () => numbers().at(-1) === 'end', patienceMs)
    return { published, received: numbers(), told: reader.told, cuts: proxy.cuts }
  } finally {
    await reader.close()
    publisher.abandon()
    await proxy.close()
    await hub.abandon()
    rmSync(directory, { recursive: true })
  }
}

export interface StoryOptions {
  readonly seed: number
  /** At random bytes; two more connections break for other reasons. */
  readonly cuts: number
}

export interface Story {
  readonly published: readonly string[]
  readonly received: readonly string[]
  readonly told: readonly { readonly type: string; readonly data: string }[]
  readonly cuts: number
}

// More than the first line of an answer and its content type.
const headBytes = 200

// Each return takes a client the half second that the hub asks for, and a machine may be busy.
const patienceMs = 120_000

/** Publishes up to 100 numbers a second, of two types in turn. What gets no answer is sent again under the same key. */
function startNumbers(origin: string) {
  const published: string[] = []
  let stopped = false
  let abandoned = false

  async function publish(body: string): Promise<void> {
    const type = published.length % 2 === 0 ? 'message' : 'step'
    const request = { method: 'POST', body, headers: { 'Content-Type': 'application/json', 'Idempotency-Key': body } }
    while (!abandoned) {
      if (await isCreated(`${origin}/publish/numbers?type=${type}`, request)) {
        published.push(body)
        return
      }
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async function run(): Promise<void> {
    while (!stopped) {
      await publish(String(published.length))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const running = run()

  return {
    published,
    more(count: number) {
      const goal = published.length + count
      return until(`${count} more are published`, () => published.length >= goal, patienceMs)
    },
    async finish() {
      stopped = true
      await running
      await publish('end')
      return published
    },
    abandon() {
      stopped = true
      abandoned = true
    },
  }
}

async function isCreated(url: string, request: RequestInit): Promise<boolean> {
  try {
    return (await fetch(url, { ...request, signal: AbortSignal.timeout(2000) })).status === 201
  } catch {
    // The hub is away, and comes back.
    return false
  }
}
