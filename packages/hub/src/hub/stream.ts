import { createFrameReader, type StreamFrame } from './frame-reader.ts'
import type { SubscribeRequest } from './hub.ts'
import { onAbort } from './on-abort.ts'
import { createPullSink } from './pull-sink.ts'
import type { Session } from './session.ts'
import type { Sink } from './sink.ts'

export interface StreamOptions {
  /** Ends the stream when it is aborted: the loop over it is left, without an error. */
  signal?: AbortSignal | undefined
  /**
   * Bytes that may wait for the loop before it is considered slow, and is served from the log when it goes on. Also what
   * each slow loop costs in memory.
   * @defaultValue 65536
   */
  budgetBytes?: number
}

/**
 * A stream for the program itself: each loop over it is a reader like any other, connected when the loop starts and gone
 * when it is left. A frame that the program has not asked for yet is not lost, however long it takes.
 */
export function createStream(
  subscribe: (request: SubscribeRequest, sink: Sink) => Session,
  request: SubscribeRequest,
  { signal, budgetBytes = 64 * 1024 }: StreamOptions = {},
): AsyncIterable<StreamFrame> {
  return {
    [Symbol.asyncIterator]() {
      const onDrain = () => session?.drained()
      const sink = createPullSink({ budgetBytes, itemsOf: createFrameReader(), onDrain, onDestroy: leave })
      // Written to, and perhaps ended, before it is known here.
      let session: Session | undefined
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
