/**
 * Resolves in a new task, after everything that is due in this one. In a page, a timer would take four milliseconds.
 */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { setImmediate } = globalThis as { setImmediate?: (run: () => void) => void }
    if (setImmediate) return setImmediate(resolve)
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = () => {
      port1.close()
      resolve()
    }
    port2.postMessage(0)
  })
}
