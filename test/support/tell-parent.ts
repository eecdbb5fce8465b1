/**
 * Sends a message from a helper process to the process that started it. The parent may have closed the channel a moment
 * ago, and the child learns of that only later, by `disconnect`. Without a callback, Node turns the failed write (EPIPE) into
 * an uncaught error, and a child that was about to end in order ends with code 1.
 */
export function tellParent(message: object): void {
  process.send?.(message, undefined, undefined, passOverClosedChannel)
}

function passOverClosedChannel(): void {
  // Nobody is left to tell. `disconnect` follows and ends the process.
}
