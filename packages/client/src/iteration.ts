import type { StreamEvent } from './event-stream.ts'
import type { Handler, Off } from './handler-set.ts'
import { type Handlers, offerNews } from './handlers.ts'
import type { StreamState } from './stream-state.ts'

/**
 * The events of a stream for one `for await`. The stream is read at the pace of the loop: the loop holds one event,
 * which counts as handled when the loop asks for the next. So nothing is dropped, and nothing piles up in the client.
 *
 * @param signal - ends the loop; an event that the loop holds still counts only when the loop is done with it
 */
export function iterate(
  on: Handlers['on'],
  onState: (handler: Handler<StreamState>) => Off,
  signal?: AbortSignal,
): AsyncGenerator<StreamEvent, void> {
  let isOver = false
  let release: Off | undefined
  let arrive!: (event?: StreamEvent) => void
  // Undefined while the loop holds an event.
  let arrival: Promise<StreamEvent | undefined> | undefined = next()
  const offOffer = on(offerNews, (event: StreamEvent) => {
    arrive(event)
    return new Promise<void>((resolve) => {
      release = resolve
    })
  })
  const offState = onState(({ state }) => {
    if (state !== 'closed') return
    isOver = true
    arrive()
  })
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  const events = loop()
  events.return = () => {
    // The generator's own `return` would wait until the generator has got its event.
    leave()
    return events.next()
  }
  return events

  async function* loop(): AsyncGenerator<StreamEvent, void> {
    for (;;) {
      const event = await arrival
      if (!event) break
      arrival = undefined
      yield event
      arrival = next()
      release?.()
      // The end may have come while an event was on its way to the loop.
      if (isOver) break
    }
    // The `await` takes one turn. By then the stream has counted the loop's last event and has not gone on, so code
    // after the loop may read `cursor`.
    await leave()
  }

  function end(): void {
    isOver = true
    if (arrival) leave()
  }

  function leave(): void {
    isOver = true
    offOffer()
    offState()
    signal?.removeEventListener('abort', end)
    release?.()
    arrive()
    arrival = undefined
  }

  function next(): Promise<StreamEvent | undefined> {
    return new Promise((resolve) => {
      arrive = resolve
    })
  }
}
