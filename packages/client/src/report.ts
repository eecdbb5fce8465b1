/**
 * Shows an exception of the user's code without letting it end the stream: as an uncaught one where the platform can
 * report without throwing, which error trackers see, and on the console in Node, where an uncaught one ends the process.
 */
export function report(error: unknown): void {
  const show = globalThis.reportError ?? console.error
  show(error)
}
