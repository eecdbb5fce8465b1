import type { StreamEvent } from './event-stream.ts'
import type { Handler, Off } from './handler-set.ts'
import { type Handlers, offerNews } from './handlers.ts'
import type { StreamState } from './stream-state.ts'

/**
 * The events of a stream for one `for await`. The stream is read at the pace of the loop: one event is in its hands, and
 * counts as handled when it asks for the next. So nothing is dropped, and nothing piles up here.
 *
 * @param signal - ends it; an event in the hands of the loop still counts only when the loop is done with it
 */
export function iterate(
  on: Handlers['on'],
  onState: (handler: Handler<StreamState>) => Off,
  signal?: AbortSignal,
): AsyncGenerator<StreamEvent, void> {
  let isOver = false
  let release: Off | undefined
  let arrive!: (event?: StreamEvent) => void
  // None while an event is in the hands of the loop.
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
    // A generator that waits for an event would have this wait, too.
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
      // Looked at, because the end may have come while an event was on its way to the loop.
      if (isOver) break
    }
    // One turn later the stream has counted the event that the loop had, and has not gone on yet: code behind the loop may
    // read `cursor`.
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
