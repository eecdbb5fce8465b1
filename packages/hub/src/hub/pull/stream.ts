import type { Shape } from '../live/shape.ts'
import type { Sink } from '../live/sink.ts'
import { createSubscription } from '../live/subscription.ts'
import { createFrameReader, type StreamFrame } from '../read/frame-reader.ts'
import type { Start } from '../read/opening.ts'
import type { Admitted, ConnectedReader, SubscribeRequest } from '../readers/subscribe-request.ts'
import { onAbort } from './on-abort.ts'
import { createPullSink } from './pull-sink.ts'

export interface PullOptions {
  /** Abort it to end the stream. The loop over the stream ends without an error. */
  signal?: AbortSignal | undefined
  /**
   * Bytes that may wait for the loop. A loop that is slower catches up from the log. Each slow loop takes this much memory.
   * @defaultValue 65536
   */
  sinkBudgetBytes?: number | undefined
}

export interface StreamOptions extends PullOptions, Pick<SubscribeRequest, 'reader' | 'rights'> {
  /**
   * The cursor to start from, such as the last `id` of an earlier stream: all events after it come first. `earliest` starts with
   * the oldest events that the hub holds.
   * @defaultValue none: the stream starts with the next event
   */
  from?: 'earliest' | (string & {}) | null | undefined
  /**
   * Only events of these types.
   * @defaultValue all types
   */
  types?: readonly string[] | undefined
  /**
   * What each frame has besides the event: its channel, or an envelope around its data.
   * @defaultValue the event as it was published
   */
  shape?: Shape | undefined
}

/**
 * A stream for the program itself. Each loop over it is a reader like any other: it connects when the loop starts, and
 * disconnects when the loop ends. A slow loop loses no frame.
 */
export function createStream(
  subscribe: (admitted: Admitted, sink: Sink) => ConnectedReader,
  request: SubscribeRequest,
  { signal, sinkBudgetBytes = 64 * 1024 }: PullOptions = {},
): AsyncIterable<StreamFrame> {
  return {
    [Symbol.asyncIterator]() {
      const onDrain = () => session?.drained()
      const sink = createPullSink({
        budgetBytes: sinkBudgetBytes,
        itemsOf: createFrameReader(),
        onDrain,
        onDestroy: leave,
      })
      // `subscribe` may write to the sink, and even end it, before it returns the session.
      let session: ConnectedReader | undefined
      if (signal?.aborted) sink.end()
      else session = subscribe({ kind: 'admitted', request }, sink)
      const stopListening = onAbort(signal, leave)

      function leave(): void {
        stopListening()
        session?.disconnected()
        sink.stop()
      }

      return {
        next: () =>
          new Promise((resolve, reject) => {
            sink.ask({
              take: (value) => resolve({ done: false, value }),
              end() {
                stopListening()
                resolve({ done: true, value: undefined })
              },
              fail: reject,
            })
          }),
        // A generator's `return` would wait until the pending `next` has an event.
        async return() {
          leave()
          return { done: true, value: undefined }
        },
        // Some helpers call `throw` when the program fails. Without it, the reader would stay connected.
        async throw(error) {
          leave()
          throw error
        },
      }
    },
  }
}

/** The request of a program that names channels and a cursor. */
export function streamRequest(
  selectors: string | readonly string[],
  { from, types, shape, reader, rights }: StreamOptions = {},
): SubscribeRequest {
  return {
    subscription: createSubscription([selectors].flat(), types, shape),
    start: startFrom(from),
    ...(reader && { reader }),
    ...(rights && { rights }),
  }
}

function startFrom(from: StreamOptions['from']): Start {
  if (from === undefined || from === null) return { from: 'now' }
  return from === 'earliest' ? { from: 'earliest' } : { from: 'cursor', cursor: from }
}
