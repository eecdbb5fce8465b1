import { createHub, type Hub, type HubOptions } from '@rejoin/hub'
import type { Session } from '@rejoin/hub/internal'
import { createSubscription, type Sink, type SubscribeRequest } from '@rejoin/hub/internal'
import { memoryLog } from '@rejoin/hub/memory'
import { createVirtualEnvironment, type VirtualEnvironment } from '@rejoin/hub/testing'
import { createParser } from '@rejoin/protocol'

export interface ConnectOptions extends Partial<Omit<SubscribeRequest, 'subscription'>> {
  /** Short for a start behind this id. */
  cursor?: string
  types?: string[]
  /** Bytes the sink takes before it is full. */
  fullAfter?: number
}

export interface TestHub {
  readonly hub: Hub
  readonly environment: VirtualEnvironment
  connect(channels: string | string[], options?: ConnectOptions): Recorder
}

/** A hub on virtual time, and readers that write down what they get. */
export async function openHub(options: Partial<HubOptions> = {}, seed = 1): Promise<TestHub> {
  const environment = createVirtualEnvironment({ seed })
  const hub = await createHub({ log: memoryLog(), environment, ...options })
  return {
    hub,
    environment,
    connect(channels, { cursor, types, fullAfter, ...request } = {}) {
      const recorder = createRecorder(fullAfter ?? Number.POSITIVE_INFINITY)
      const subscription = createSubscription([channels].flat(), types)
      const start = cursor === undefined ? { from: 'now' as const } : { from: 'cursor' as const, cursor }
      const admitted = { kind: 'admitted' as const, request: { subscription, start, ...request } }
      recorder.session = hub.port.subscribe(admitted, recorder) as Session
      return recorder
    },
  }
}

export interface Received {
  readonly type: string
  readonly data: string
  readonly id: string
}

export interface Recorder extends Sink {
  session: Session
  readonly writes: string[]
  /** What it was written, as it came. */
  readonly buffers: Uint8Array[]
  readonly text: string
  /** All events, those of the protocol included. */
  readonly events: Received[]
  /** The data of published events. */
  readonly data: string[]
  readonly lastId: string
  ended: boolean
  destroyed: boolean
  /** What waited has been read; up to `fullAfter` more bytes are welcome. */
  drain(): void
}

function createRecorder(fullAfter: number): Recorder {
  let waiting = 0
  const recorder = {
    session: undefined as unknown as Session,
    writes: [] as string[],
    buffers: [] as Uint8Array[],
    ended: false,
    destroyed: false,
    write({ plain }: { plain: Uint8Array }) {
      recorder.buffers.push(plain)
      recorder.writes.push(new TextDecoder().decode(plain))
      waiting += plain.length
      return waiting <= fullAfter
    },
    get pending() {
      return waiting
    },
    end() {
      recorder.ended = true
    },
    destroy() {
      recorder.destroyed = true
    },
    drain() {
      waiting = 0
      recorder.session.drained()
    },
    get text() {
      return recorder.writes.join('')
    },
    get events() {
      return parse(recorder.text).events
    },
    get data() {
      const own = ['hello', 'sync-required', 'checkpoint', 'close']
      return recorder.events.filter((event) => !own.includes(event.type)).map((event) => event.data)
    },
    get lastId() {
      return parse(recorder.text).lastId
    },
  }
  return recorder
}

/** What a reader that holds `lastId` makes of a piece of a stream. */
export function parse(text: string, lastId = ''): { events: Received[]; lastId: string } {
  const events: Received[] = []
  const parser = createParser({ lastEventId: lastId, onEvent: (event) => void events.push(event) })
  parser.feed(text)
  return { events, lastId: parser.lastEventId }
}
