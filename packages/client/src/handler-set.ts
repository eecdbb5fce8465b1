/** The handlers of one kind of news. */
export function createHandlerSet<Value>(): HandlerSet<Value> {
  // The array is never changed in place, so that a round needs no copy: a copy would be the most expensive part of a
  // small event.
  let handlers: readonly Handler<Value>[] = []
  return {
    add(handler) {
      // A function of its own: a handler that is added twice is called twice, and each `Off` removes one of the two.
      const own: Handler<Value> = (value) => handler(value)
      handlers = [...handlers, own]
      return () => {
        handlers = handlers.filter((other) => other !== own)
      }
    },

    call(value, isWanted) {
      let pending: Promise<unknown> | undefined
      // A handler that is added during the round is first called in the next one.
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
 * Reports an error of the handler, or of its promise, so that it ends neither the stream nor the round of the other
 * handlers.
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
 * Reports an error of the user's code without ending the stream. `reportError` shows it as an uncaught error, which
 * error trackers see. Node has no `reportError`, and an uncaught error ends its process, so there the console shows the
 * error.
 */
export function report(error: unknown): void {
  const show = globalThis.reportError ?? console.error
  show(error)
}

/** Looks for `then`: a promise of another realm or library is not an instance of our `Promise`. */
export function isPromise<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof (value as Partial<PromiseLike<Value>> | undefined)?.then === 'function'
}

/**
 * When it returns a promise, the stored cursor waits for that. A promise that rejects is reported and counts as
 * settled. Any other result is ignored.
 */
export type Handler<Value> = (value: Value) => unknown

/** Removes the handler. */
export type Off = () => void

export interface HandlerSet<Value> {
  /** A handler that is added several times is called as often. */
  add(handler: Handler<Value>): Off
  /**
   * @param isWanted - asked before each handler: an earlier handler may have made the news obsolete
   * @returns a promise for the handlers that returned one; it never rejects
   */
  call(value: Value, isWanted: () => boolean): Promise<unknown> | undefined
  isEmpty(): boolean
}
