import type { WindowOptions } from '@rejoin/hub'
import { createRandom } from '@rejoin/hub/testing'
import { type FaultProxy, type Link, openFaultProxy, type Toxics } from '../../support/fault-proxy/fault-proxy.ts'
import type { History } from '../history/history.ts'
import type { Send } from '../recorders/recorders.ts'
import { type Crowd, nameOf, openCrowd, type Patience } from './crowd.ts'

/** A crowd of which every reader is behind a proxy of its own. */
export async function openField(options: FieldOptions): Promise<Field> {
  const { port, onLink, toxics = {}, channels = fieldChannels } = options
  const proxiedReaders: ProxiedReader[] = []
  for (let index = 0; index < options.readers; index += 1) {
    const proxy = await openFaultProxy({ target: { port }, random: createRandom(options.seed + index), toxics })
    const reader = { who: nameOf(index), proxy }
    proxy.onLink((link) => onLink?.(link, { who: reader.who, index }))
    proxiedReaders.push(reader)
  }
  const originOf = (index: number) => `http://127.0.0.1:${(proxiedReaders[index] as ProxiedReader).proxy.port}`
  const crowd = openCrowd({ ...options, channels, originOf, resends: 5 })
  return {
    ...crowd,
    proxiedReaders,
    async finish() {
      await crowd.finish()
      await Promise.all(proxiedReaders.map(({ proxy }) => proxy.close()))
    },
  }
}

const fieldChannels = ['orders/1', 'orders/2', 'stock']

export interface FieldOptions {
  readonly history: History
  readonly seed: number
  /** Where the hub listens. */
  readonly port: number
  readonly send: Send
  readonly readers: number
  readonly eventsPerSecond: number
  /**
   * What is published to.
   * @defaultValue three channels
   */
  readonly channels?: readonly string[]
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
  /**
   * What the proxies do to all connections.
   * @defaultValue none
   */
  readonly toxics?: Toxics
  /** Called with every connection of a reader before a byte has passed. */
  onLink?(link: Link, reader: { readonly who: string; readonly index: number }): void
}

export interface Field extends Crowd {
  /** In the order of the readers. */
  readonly proxiedReaders: readonly ProxiedReader[]
}

export interface ProxiedReader {
  readonly who: string
  readonly proxy: FaultProxy
}
