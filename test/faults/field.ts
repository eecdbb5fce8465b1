import type { ConnectOptions } from '@rejoin/client'
import type { WindowOptions } from '@rejoin/hub'
import { createRandom } from '@rejoin/hub/testing'
import { type FaultProxy, type Link, openFaultProxy, type Toxics } from './fault-proxy.ts'
import type { History } from './history.ts'
import {
  openClientReader,
  openPublisher,
  openStrictReader,
  type PublishedEvent,
  type RecordedReader,
  type Send,
  waitForAll,
} from './recorder.ts'

/**
 * Readers of one hub, each behind a proxy of its own, and a publisher. Every other reader is our
 * client; those between know the protocol only.
 */
export async function openField(options: FieldOptions): Promise<Field> {
  const { history, port, send, eventsPerSecond, patience, onLink } = options
  history.write({ kind: 'ids', order: 'text' })
  history.write({ kind: 'window', ...options.window })
  history.write({ kind: 'budget', catchUpMs: patience.catchUpMs })
  const publisher = openPublisher({ history, who: 'publisher', channels, eventsPerSecond, send, resends: 5 })
  const places: Place[] = []
  for (let index = 0; index < options.readers; index += 1) {
    const who = index % 2 === 0 ? `client-${index}` : `strict-${index}`
    const random = createRandom(options.seed + index)
    const proxy = await openFaultProxy({ target: { port }, random, toxics: options.toxics ?? {} })
    proxy.onLink((link) => onLink?.(link, { who, index }))
    const common = { history, who, channels, url: `http://127.0.0.1:${proxy.port}${path}` }
    const reader =
      index % 2 === 0
        ? openClientReader({ ...common, options: patience.client })
        : openStrictReader({ ...common, ...patience.strict })
    places.push({ who, proxy, reader })
  }
  const readers = places.map((place) => place.reader)

  return {
    places,
    newest: () => publisher.newest(),
    receipts: () => readers.reduce((sum, { receipts }) => sum + receipts.count, 0),
    caughtUp: (events) => waitForAll(readers, events, patience.catchUpMs),
    async finish() {
      await publisher.stop()
      history.write({ kind: 'quiet' })
      await waitForAll(readers, publisher.newest(), patience.catchUpMs)
      for (const reader of readers) reader.close()
      await Promise.all(places.map(({ proxy }) => proxy.close()))
    },
  }
}

const channels = ['orders/1', 'orders/2', 'stock']
const path = `/events?${channels.map((channel) => `channel=${encodeURIComponent(channel)}`).join('&')}`

export interface FieldOptions {
  readonly history: History
  readonly seed: number
  /** Where the hub listens. */
  readonly port: number
  readonly send: Send
  readonly readers: number
  readonly eventsPerSecond: number
  /** What the hub's log holds. */
  readonly window: WindowOptions
  readonly patience: Patience
  /**
   * What all lines suffer.
   * @defaultValue none
   */
  readonly toxics?: Toxics
  /** Called with every connection of a reader before a byte has passed. */
  onLink?(link: Link, reader: { readonly who: string; readonly index: number }): void
}

/** How long readers wait, and how long they may take. */
export interface Patience {
  readonly client: Pick<ConnectOptions, 'retryMs' | 'maxRetryMs'>
  readonly strict: { readonly retryMs?: number; readonly silenceMs: number }
  /** From the end of a fault until a reader has everything. */
  readonly catchUpMs: number
}

export interface Field {
  readonly places: readonly Place[]
  /** The newest acknowledged event of each channel. */
  newest(): PublishedEvent[]
  /** Events received by all readers together. */
  receipts(): number
  /** Resolves when all readers have these events, or their time is over. */
  caughtUp(events: readonly PublishedEvent[]): Promise<void>
  /** Stops the publisher, lets everybody catch up, and stops the readers. */
  finish(): Promise<void>
}

export interface Place {
  readonly who: string
  readonly proxy: FaultProxy
  readonly reader: RecordedReader
}
