import type { SubscribeRequest } from '../hub.ts'
import type { Shape } from '../live/shape.ts'
import { createSubscription } from '../live/subscription.ts'
import type { ConnectedReader, HubPort } from '../port.ts'
import { createFrameReader, type StreamFrame } from '../read/frame-reader.ts'
import type { Start } from '../read/opening.ts'
import { onAbort } from './on-abort.ts'
import { createPullSink } from './pull-sink.ts'

export interface PullOptions {
  /** Ends the stream when it is aborted: the loop over it is left, without an error. */
  signal?: AbortSignal | undefined
  /**
   * Bytes that may wait for the loop before it is considered slow, and is served from the log when it goes on. Also what
   * each slow loop costs in memory.
   * @defaultValue 65536
   */
  sinkBudgetBytes?: number
}

export interface StreamOptions extends PullOptions, Pick<SubscribeRequest, 'reader' | 'rights'> {
  /**
   * The cursor to start from, such as the last `id` of an earlier stream: everything after it is delivered first. `earliest`
   * starts with the oldest events that the hub holds.
   * @defaultValue none: the stream starts with what happens next
   */
  from?: 'earliest' | (string & {}) | null
  /**
   * Only events of these types.
   * @defaultValue all types
   */
  types?: readonly string[]
  /**
   * What each event looks like, for readers that expect another form.
   * @defaultValue the event as it was published
   */
  shape?: Shape
}

/**
 * A stream for the program itself: each loop over it is a reader like any other, connected when the loop starts and gone
 * when it is left. A frame that the program has not asked for yet is not lost, however long it takes.
 */
export function createStream(
  subscribe: HubPort['subscribe'],
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
      // Written to, and perhaps ended, before it is known here.
      let session: ConnectedReader | undefined
      if (signal?.aborted) sink.end()
      else session = subscribe(request, sink)
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
        // Not a generator's: that would wait for the event that is being waited for.
        async return() {
          leave()
          return { done: true, value: undefined }
        },
        // For helpers that pass on a failure of the program, which would otherwise leave a reader behind.
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
