import { createRandom } from '@rejoin/hub/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connect, type EventStream, type SyncRequired, type TransportName } from '../src/index.ts'
// Here already: its code is loaded in real time, of which none passes in these tests.
import '../src/optional.ts'
import '../src/transports/fallbacks.ts'
import { idOf, indexOf, pick, unrulyHub } from './support/unruly-hub.ts'

// What is right whatever happens: each event once and in order, from the cursor on or from the gap that was told; one
// connection at a time; nothing left over. More of them: MISFORTUNES=1000.
const seeds = Array.from({ length: Number(process.env.MISFORTUNES ?? 40) }, (_, index) => index + 1)

test('after any faults each event arrives once and in order, or a gap is announced', { timeout: 300_000 }, async () => {
  // Of tokens that cannot be had, and of handlers that throw.
  vi.spyOn(console, 'error').mockReturnValue()
  onTestFinished(() => void vi.restoreAllMocks())
  for (const seed of seeds) await suffer(seed)
})

async function suffer(seed: number): Promise<void> {
  const random = createRandom(seed)
  const hub = unrulyHub(random)
  hub.publish()
  const time = steppedTime(random)
  const isLoop = random() < 0.3
  const transports = pick<TransportName[]>(random, [['fetch'], ['fetch', 'long-poll'], ['long-poll', 'fetch']])
  let isCalm = false
  // The next that the user is owed; unknown until the first has come.
  let owed: number | null = null
  // Kept until the end: what a handler throws is reported, and goes no further.
  const wrong: unknown[] = []
  let stream = open(null)

  for (let step = 0; step < 150; step++) {
    pick(random, [
      ...Array<() => void>(12).fill(hub.publish),
      ...Array<() => void>(6).fill(() => time.advance(random() * 4000)),
      () => hub.cut('end'),
      () => hub.cut('reset'),
      hub.hang,
      hub.beat,
      hub.trim,
      () => time.setClock(pick(random, [-3_600_000, 3_600_000])),
      () => stream.reconnect(),
      () => {
        for (let time = 0; time < 20; time++) stream.reconnect()
      },
    ])()
    await turns(random() < 0.7 ? 1 : 0)
    await reopen()
  }

  isCalm = true
  hub.calm()
  // Longer than the ten minutes for which a server may send a client away.
  for (let round = 0; round < 150; round++) {
    time.advance(5000)
    hub.beat()
    await turns(4)
    await reopen()
  }
  hub.publish()
  for (let second = 0; second < 3; second++) {
    time.advance(1000)
    await turns(8)
  }
  expect(owed, `seed ${seed}: ${JSON.stringify(stream.state)}`).toBe(hub.log.length)
  expect(wrong, `seed ${seed}`).toEqual([])
  stream.close()
  await turns(2)
  expect({ ...hub.lines(), timers: time.timers() }, `seed ${seed}`).toEqual({
    now: 0,
    most: expect.any(Number),
    timers: 0,
  })
  expect(hub.lines().most, `seed ${seed}`).toBeLessThanOrEqual(1)

  function open(from: string | null): EventStream {
    const token = async () => {
      if (!isCalm && random() < 0.1) throw new Error('no token')
      return 'mine'
    }
    const opened = connect('http://hub/events/a', {
      ...{ clock: time.clock, fetch: hub.fetch, from, transports, retryMs: 50, maxRetryMs: 3000 },
      ...(random() < 0.3 ? { token } : {}),
    })
    if (isLoop) void loop(opened)
    else {
      opened.on('message', (event) => {
        note(event)
        disturb(opened)
      })
    }
    opened.onSync(async (gap) => reload(opened, gap))
    opened.onState(() => disturb(opened))
    opened.onDuplicate(() => disturb(opened))
    return opened
  }

  async function loop(opened: EventStream): Promise<void> {
    for await (const event of opened) {
      await turns(random() < 0.3 ? 1 : 0)
      note(event)
    }
  }

  function note({ id, data }: { id: string; data: unknown }): void {
    if (id !== idOf(data as number) || (owed !== null && data !== owed)) wrong.push({ id, data, owed })
    owed = (data as number) + 1
  }

  async function reload(opened: EventStream, { reason, latest }: SyncRequired): Promise<void> {
    await turns(random() < 0.5 ? 1 : 0)
    // A place that never reached the hub: what was passed over is not known, and everything is loaded.
    owed = reason === 'expired' ? indexOf(latest) + 1 : null
    disturb(opened)
  }

  function disturb(opened: EventStream): void {
    const luck = isCalm ? 1 : random()
    if (luck < 0.02) opened.reconnect()
    else if (luck < 0.03) opened.close()
    else if (luck < 0.06) throw new Error('a handler fails')
  }

  /** Goes on where a stream was that has been closed, as a page does that is loaded again. */
  async function reopen(): Promise<void> {
    if (stream.state.state !== 'closed') return
    await turns(4)
    const { cursor } = stream
    const next: number | null = cursor === null ? null : indexOf(cursor) + 1
    // Rather again than never: the place may be behind what the user got, and not before it.
    if (next !== null && owed !== null) expect(next, `seed ${seed}`).toBeLessThanOrEqual(owed)
    owed = next
    stream = open(cursor)
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Time that passes when it is told to, and a wall clock that can be set meanwhile. */
function steppedTime(random: () => number) {
  const timers = new Map<number, { at: number; callback: () => void }>()
  let now = 0
  let wallAhead = 1_700_000_000_000
  let made = 0
  return {
    clock: {
      now: () => now + wallAhead,
      random,
      setTimeout(callback: () => void, ms: number) {
        timers.set(++made, { at: now + ms, callback })
        return made
      },
      clearTimeout: (timer: unknown) => void timers.delete(timer as number),
    },
    timers: () => timers.size,
    setClock(byMs: number) {
      wallAhead += byMs
    },
    advance(ms: number) {
      const end = now + ms
      for (;;) {
        const [due] = [...timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)
        if (!due) break
        timers.delete(due[0])
        now = Math.max(now, due[1].at)
        due[1].callback()
      }
      now = end
    },
  }
}
