import { report } from './report.ts'

/** Handlers for one kind of news. */
export function createHandlerSet<Value>(): HandlerSet<Value> {
  const handlers = new Set<Handler<Value>>()
  return {
    add(handler) {
      handlers.add(handler)
      return () => {
        handlers.delete(handler)
      }
    },

    call(value, isWanted) {
      const pending: Promise<unknown>[] = []
      // Over a copy: a handler that a handler adds is for what comes next.
      for (const handler of [...handlers]) {
        if (!handlers.has(handler) || !isWanted()) continue
        const settled = callHandler(handler, value)
        if (settled) pending.push(settled)
      }
      return pending.length > 0 ? Promise.all(pending) : undefined
    },

    isEmpty: () => handlers.size === 0,
  }
}

/**
 * Reports what the handler throws, or its promise rejects with, so that it ends neither the stream nor the round of the
 * other handlers.
 */
export function callHandler<Value>(handler: Handler<Value>, value: Value): Promise<unknown> | undefined {
  try {
    const result = handler(value)
    // By its method: a promise of another realm or library is none of our class.
    if (typeof (result as Partial<Promise<unknown>> | undefined)?.then === 'function') {
      return Promise.resolve(result).catch(report)
    }
  } catch (error) {
    report(error)
  }
}

/** A promise that it returns is watched for its rejection, which is reported; anything else is ignored. */
export type Handler<Value> = (value: Value) => unknown

/** Takes the handler off again. */
export type Off = () => void

export interface HandlerSet<Value> {
  add(handler: Handler<Value>): Off
  /**
   * @param isWanted - asked before each handler, as an earlier one may have made the news void
   * @returns a promise for those that returned one. It never rejects.
   */
  call(value: Value, isWanted: () => boolean): Promise<unknown> | undefined
  isEmpty(): boolean
}
