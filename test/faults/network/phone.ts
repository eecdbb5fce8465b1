import type { Clock, ConnectOptions } from '@rejoin/client'
import type { WindowOptions } from '@rejoin/hub'
import { createRandom } from '@rejoin/hub/testing'
import { type FaultProxy, openFaultProxy } from '../../support/fault-proxy/fault-proxy.ts'
import { pathOf } from '../crowds/crowd.ts'
import type { History } from '../history/history.ts'
import { openClientReader, openPublisher, type Send, waitForAll } from '../recorders/recorders.ts'

/**
 * The day of some phones: tunnels, lifts, other networks, slow ones, and pockets in which the phone sleeps. Each phone has a
 * day of its own, until the time is over.
 */
export async function runPhone(options: PhoneOptions): Promise<void> {
  const { history, seed, phones, forMs, window, catchUpMs, eventsPerSecond, send, onProgress } = options
  history.write({ kind: 'run', name: 'phone', seed, inputs: { phones, forMs } })
  history.write({ kind: 'ids', order: 'text' })
  history.write({ kind: 'window', ...window })
  history.write({ kind: 'budget', catchUpMs })
  const endsAt = performance.now() + forMs
  const publisher = openPublisher({ history, who: 'publisher', channels, eventsPerSecond, send, resends: 5 })
  const all = await Promise.all(Array.from({ length: phones }, (_, index) => openPhone(options, index)))
  await waitForAll(readersOf(all), publisher.newest(), catchUpMs)
  await Promise.all(all.map(live))
  await publisher.stop()
  history.write({ kind: 'quiet' })
  await waitForAll(readersOf(all), publisher.newest(), catchUpMs)
  for (const { reader } of all) reader.close()
  await Promise.all(all.map(({ proxy }) => proxy.close()))

  async function live(phone: Phone): Promise<void> {
    const { who, random } = phone
    while (performance.now() < endsAt) {
      await pause(random() * longestMs(0.2))
      const [what, episode] = pick(Object.entries(episodes), random)
      history.write({ kind: 'fault', what, readers: [who] })
      await episode(phone, (0.05 + 0.95 * random()) * longestMs(1))
      history.write({ kind: 'heal', readers: [who] })
      onProgress?.(`${who}: ${what}`)
    }
  }

  /** An episode is at most half a minute, and in a short run a fifth of it. */
  function longestMs(share: number): number {
    return share * Math.min(30_000, forMs / 5)
  }
}

export interface PhoneOptions {
  readonly history: History
  readonly seed: number
  /** Where the hub listens. */
  readonly port: number
  readonly send: Send
  readonly phones: number
  readonly eventsPerSecond: number
  readonly forMs: number
  /** What the hub's log holds. */
  readonly window: WindowOptions
  readonly client: Pick<ConnectOptions, 'retryMs' | 'maxRetryMs'>
  /** From the end of an episode until a phone has everything. */
  readonly catchUpMs: number
  onProgress?(text: string): void
}

const channels = ['inbox', 'orders/1']

/** What happens to a phone for so long. It is in order again afterwards. */
const episodes: Record<string, (phone: Phone, ms: number) => Promise<void>> = {
  async tunnel({ proxy }, ms) {
    proxy.reject('silence')
    proxy.cutAll('half-open')
    await pause(ms)
    proxy.accept()
  },
  async lift({ proxy }, ms) {
    proxy.reject('reset')
    proxy.cutAll('reset')
    await pause(ms)
    proxy.accept()
  },
  // What was sent from the old address is lost without a sound; new connections go through at once.
  async 'another network'({ proxy }) {
    proxy.cutAll('half-open')
  },
  async 'a slow network'({ proxy, random }, ms) {
    const down = { bytesPerSecond: 5000 + random() * 30_000, latencyMs: 100 + random() * 500, jitterMs: 300 }
    proxy.toxics = { down, up: { latencyMs: 200 } }
    await pause(ms)
    proxy.toxics = {}
  },
  async 'a network that comes and goes'({ proxy, random }, ms) {
    for (const until = performance.now() + ms; performance.now() < until; ) {
      proxy.cutAll(pick(['reset', 'fin', 'half-open'] as const, random))
      await pause(200 + random() * 3000)
    }
  },
  async sleep({ proxy, clock }, ms) {
    const wake = clock.sleep()
    proxy.reject('silence')
    proxy.cutAll('half-open')
    await pause(ms)
    proxy.accept()
    wake()
  },
}

async function openPhone({ history, seed, port, client }: PhoneOptions, index: number): Promise<Phone> {
  const random = createRandom(seed + index)
  const proxy = await openFaultProxy({ target: { port }, random })
  const clock = sleepyClock()
  // Every third has a way of its own; the others may go from one to the other.
  const transports = index % 3 === 2 ? { transports: ['long-poll'] as const } : {}
  const who = `phone-${index}`
  const url = `http://127.0.0.1:${proxy.port}${pathOf(channels)}`
  const reader = openClientReader({ history, who, url, channels, options: { ...client, ...transports, clock } })
  return { who, random, proxy, clock, reader }
}

interface Phone {
  readonly who: string
  random(): number
  readonly proxy: FaultProxy
  readonly clock: SleepyClock
  readonly reader: ReturnType<typeof openClientReader>
}

/** The clock of a machine that can sleep: meanwhile no timer fires, and those that were due fire late. */
function sleepyClock(): SleepyClock {
  const held = new Map<unknown, () => void>()
  let isAsleep = false
  return {
    now: () => Date.now(),
    random: () => Math.random(),
    setTimeout(callback, ms) {
      const timer = setTimeout(() => (isAsleep ? held.set(timer, callback) : callback()), ms)
      return timer
    },
    clearTimeout(timer) {
      held.delete(timer)
      clearTimeout(timer as NodeJS.Timeout)
    },
    sleep() {
      isAsleep = true
      return () => {
        isAsleep = false
        const due = [...held]
        for (const [timer, callback] of due) if (held.delete(timer)) callback()
      }
    },
  }
}

interface SleepyClock extends Clock {
  /** Returns what wakes it. */
  sleep(): () => void
}

function readersOf(phones: readonly Phone[]) {
  return phones.map(({ reader }) => reader)
}

function pick<Value>(values: readonly Value[], random: () => number): Value {
  return values[Math.floor(random() * values.length)] as Value
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms))
}
