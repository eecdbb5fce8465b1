import type { ConnectOptions } from '@rejoin/client'
import type { WindowOptions } from '@rejoin/hub'
import type { History } from '../history/history.ts'
import {
  openClientReader,
  openPublisher,
  openStrictReader,
  type PublishedEvent,
  type PublisherOptions,
  type RecordedReader,
  waitForAll,
} from '../recorders/recorders.ts'
import { measureWaited } from './waited.ts'

/** Many readers of one hub, and a publisher. Every other reader is our client; those between know the protocol only. */
export function openCrowd(options: CrowdOptions): Crowd {
  const { history, channels, patience, channelsOf = () => channels } = options
  history.write({ kind: 'ids', order: 'text' })
  history.write({ kind: 'window', ...options.window })
  history.write({ kind: 'budget', catchUpMs: patience.catchUpMs })
  const waited = measureWaited(options.pids ?? [], (ms) => history.write({ kind: 'waited', ms }))
  const publisher = openPublisher({ ...options, who: 'publisher' })
  const readers = Array.from({ length: options.readers }, (_, index) => {
    const common = { history, channels: channelsOf(index), who: nameOf(index), url: '' }
    common.url = options.originOf(index) + pathOf(common.channels)
    return index % 2 === 0
      ? openClientReader({ ...common, options: patience.client })
      : openStrictReader({ ...common, ...patience.strict })
  })

  /** On a machine that is busy with other programs, waits for longer: for what they took, and twice as long in all. */
  async function caughtUp(events: readonly PublishedEvent[]): Promise<void> {
    const before = waited.ms()
    await waitForAll(readers, events, patience.catchUpMs)
    await waitForAll(readers, events, Math.min(patience.catchUpMs, waited.ms() - before))
  }

  return {
    readers,
    newest: () => publisher.newest(),
    receipts: () => readers.reduce((sum, { receipts }) => sum + receipts.count, 0),
    caughtUp,
    async renewed() {
      const before = new Map(publisher.newest().map(({ channel, seq }) => [channel, seq]))
      const isNew = ({ channel, seq }: PublishedEvent) => seq > (before.get(channel) ?? 0)
      const limit = performance.now() + patience.catchUpMs
      while (publisher.newest().filter(isNew).length < channels.length && performance.now() < limit) {
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      await caughtUp(publisher.newest())
    },
    async finish() {
      await publisher.stop()
      history.write({ kind: 'quiet' })
      await caughtUp(publisher.newest())
      waited.close()
      for (const reader of readers) reader.close()
    },
  }
}

/** How the reader with this index is called in the history. */
export function nameOf(index: number): string {
  return index % 2 === 0 ? `client-${index}` : `strict-${index}`
}

/** Where these channels are read. */
export function pathOf(channels: readonly string[]): string {
  return `/events?${channels.map((channel) => `channel=${encodeURIComponent(channel)}`).join('&')}`
}

export interface CrowdOptions extends Omit<PublisherOptions, 'who'> {
  readonly history: History
  readonly readers: number
  /** Where the reader with this index finds the hub, without a slash at the end. */
  originOf(index: number): string
  /**
   * What the reader with this index subscribes to.
   * @defaultValue all channels
   */
  channelsOf?(index: number): readonly string[]
  /**
   * Processes of the hub. Time in which they wait for a processor is nobody's fault.
   * @defaultValue none: the hub is in this process
   */
  readonly pids?: readonly number[] | undefined
  /** What the hub's log holds. */
  readonly window: WindowOptions
  readonly patience: Patience
}

/** How long readers wait, and how long they may take. */
export interface Patience {
  readonly client: Pick<ConnectOptions, 'retryMs' | 'maxRetryMs' | 'transports'>
  readonly strict: { readonly retryMs?: number; readonly silenceMs: number }
  /** From the end of a fault until a reader has everything. */
  readonly catchUpMs: number
}

export interface Crowd {
  readonly readers: readonly RecordedReader[]
  /** The newest acknowledged event of each channel. */
  newest(): PublishedEvent[]
  /** Events received by all readers together. */
  receipts(): number
  /** Resolves when all readers have these events, or their time is over. */
  caughtUp(events: readonly PublishedEvent[]): Promise<void>
  /** Resolves when every channel has another event than now, and all readers have it, or their time is over. */
  renewed(): Promise<void>
  /** Stops the publisher, lets everybody catch up, and stops the readers. */
  finish(): Promise<void>
}
