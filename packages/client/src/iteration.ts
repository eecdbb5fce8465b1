import type { StreamEvent } from './event-stream.ts'
import type { Handler, Off } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

/**
 * The events of a stream for one `for await`. The stream is read at the pace of the loop: one event is in its hands, and
 * counts as handled when it asks for the next. So nothing is dropped, and nothing piles up here.
 *
 * @param onOffer - adds a handler for whose promise the stream waits before it goes on
 */
export function iterate(
  onOffer: (handler: Handler<StreamEvent>) => Off,
  onState: (handler: Handler<StreamState>) => Off,
): AsyncGenerator<StreamEvent, void> {
  let isOver = false
  let release: Off | undefined
  let arrive!: (event?: StreamEvent) => void
  let arrival = next()
  const offs = [
    onOffer((event) => {
      arrive(event)
      return new Promise<void>((resolve) => {
        release = resolve
      })
    }),
    onState(({ state }) => {
      isOver ||= state === 'closed'
      if (isOver) arrive()
    }),
  ]
  const events = loop()
  const finish = events.return
  events.return = () => {
    // A generator that waits for an event would have this wait, too.
    leave()
    return finish.call(events)
  }
  return events

  async function* loop(): AsyncGenerator<StreamEvent, void> {
    do {
      const event = await arrival
      if (!event) break
      arrival = next()
      yield event
      release?.()
      // Looked at, because the end may have come while an event was on its way to the loop.
    } while (!isOver)
    leave()
  }

  function leave(): void {
    isOver = true
    for (const off of offs) off()
    release?.()
    arrive()
  }

  function next(): Promise<StreamEvent | undefined> {
    return new Promise((resolve) => {
      arrive = resolve
    })
  }
}
