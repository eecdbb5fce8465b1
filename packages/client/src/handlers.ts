import type { SyncRequired } from '@rejoin/protocol'
import type { InvalidEvent, StreamEvent } from './event-stream.ts'
import { createHandlerSet, type Handler, type HandlerSet, type Off } from './handler-set.ts'

/**
 * What the user wants to be told, by kind.
 *
 * @param isWanted - false once a handler has closed the stream, after which no other is called
 */
export function createHandlers(parse: 'json' | 'text', isWanted: () => boolean): Handlers {
  const eventHandlers = new Map<string, HandlerSet<StreamEvent>>()
  const syncHandlers = createHandlerSet<SyncRequired>()
  const invalidHandlers = createHandlerSet<InvalidEvent>()
  const warned = new Set<string>()

  return {
    on(type, handler) {
      const handlers = eventHandlers.get(type) ?? createHandlerSet()
      eventHandlers.set(type, handlers)
      return handlers.add(handler)
    },
    onSync: syncHandlers.add,
    onInvalid: invalidHandlers.add,

    event(event) {
      let { data }: { data: unknown } = event
      try {
        if (parse === 'json') data = JSON.parse(event.data)
      } catch (error) {
        const { called } = invalidHandlers.call({ ...event, error }, isWanted)
        if (called === 0) warnOnce("An event's data is not JSON. Set parse: 'text', or see it with stream.onInvalid().")
        return
      }
      for (const type of new Set([event.type, '*'])) eventHandlers.get(type)?.call({ ...event, data }, isWanted)
    },

    sync(gap) {
      const { called, settled } = syncHandlers.call(gap, isWanted)
      if (called === 0) warnOnce('Events are gone that this stream should have had. Reload in stream.onSync().')
      return settled
    },
  }

  function warnOnce(message: string): void {
    if (!warned.has(message)) console.warn(`[rejoin] ${message}`)
    warned.add(message)
  }
}

export interface Handlers {
  on(type: string, handler: Handler<StreamEvent>): Off
  onSync(handler: Handler<SyncRequired>): Off
  onInvalid(handler: Handler<InvalidEvent>): Off
  event(event: StreamEvent<string, string>): void
  /** @returns what later events have to wait for */
  sync(gap: SyncRequired): Promise<unknown> | undefined
}
