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
      const { id, type } = event
      let data: unknown = event.data
      try {
        if (parse === 'json') data = JSON.parse(event.data)
      } catch (error) {
        if (invalidHandlers.isEmpty()) warnOnce("Data that is not JSON: set parse to 'text', or add onInvalid.")
        void invalidHandlers.call({ ...event, error }, isWanted)
        return
      }
      const parsed = { id, type, data }
      void eventHandlers.get(type)?.call(parsed, isWanted)
      if (type !== '*') void eventHandlers.get('*')?.call(parsed, isWanted)
    },

    sync(gap) {
      if (syncHandlers.isEmpty()) warnOnce('Events are gone, and nothing reloads what they changed: add onSync.')
      return syncHandlers.call(gap, isWanted)
    },
  }

  function warnOnce(message: string): void {
    if (!warned.has(message)) console.warn('Rejoin:', message)
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
