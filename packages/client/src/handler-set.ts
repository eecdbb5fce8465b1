/** Handlers for one kind of news. */
export function createHandlerSet<Value>(): HandlerSet<Value> {
  // Never changed in place, so that a round needs no copy: a copy would be the dearest part of a small event.
  let handlers: readonly Handler<Value>[] = []
  return {
    add(handler) {
      // A function of its own: what is added twice is called twice, and taken off once at a time.
      const own: Handler<Value> = (value) => handler(value)
      handlers = [...handlers, own]
      return () => {
        handlers = handlers.filter((other) => other !== own)
      }
    },

    call(value, isWanted) {
      let pending: Promise<unknown> | undefined
      // A handler that a handler adds is for what comes next.
      const round = handlers
      for (const handler of round) {
        if (!isWanted() || (handlers !== round && !handlers.includes(handler))) continue
        const settled = callHandler(handler, value)
        if (settled) pending = pending ? Promise.all([pending, settled]) : settled
      }
      return pending
    },

    isEmpty: () => !handlers.length,
  }
}

/**
 * Reports what the handler throws, or its promise rejects with, so that it ends neither the stream nor the round of the
 * other handlers.
 */
export function callHandler<Value>(handler: Handler<Value>, value: Value): Promise<unknown> | undefined {
  try {
    const result = handler(value)
    if (isPromise(result)) return Promise.resolve(result).catch(report)
  } catch (error) {
    report(error)
  }
}

/**
 * Shows an exception of the user's code without letting it end the stream: as an uncaught one where the platform can
 * report without throwing, which error trackers see, and on the console in Node, where an uncaught one ends the process.
 */
export function report(error: unknown): void {
  const show = globalThis.reportError ?? console.error
  show(error)
}

/** By its method: a promise of another realm or library is none of our class. */
export function isPromise<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof (value as Partial<PromiseLike<Value>> | undefined)?.then === 'function'
}

/**
 * The cursor that is stored waits for a promise that it returns. One that rejects is reported, and counts as settled.
 * Anything else is ignored.
 */
export type Handler<Value> = (value: Value) => unknown

/** Takes the handler off again. */
export type Off = () => void

export interface HandlerSet<Value> {
  /** Each time it is added, a handler is called once more. */
  add(handler: Handler<Value>): Off
  /**
   * @param isWanted - asked before each handler, as an earlier one may have made the news void
   * @returns a promise for those that returned one. It never rejects.
   */
  call(value: Value, isWanted: () => boolean): Promise<unknown> | undefined
  isEmpty(): boolean
}
