/**
 * Sends the head of a response alone when its first bytes take long: after half a second to a second.
 *
 * One timer for all responses. When ten thousand readers return together, a timer for each would be 2 MB that the garbage collector
 * has to move.
 */
export function sendHeadLater(response: HeadWaiting): void {
  newer.push(response)
  timer ??= setInterval(sendOlder, roundMs).unref()
}

export interface HeadWaiting {
  /** Does nothing when the head is out. */
  sendHead(): void
}

// In a rush of readers, the first bytes wait for their turn. No client gives up a connection within a second.
const roundMs = 500

let newer: HeadWaiting[] = []
let older: HeadWaiting[] = []
let timer: NodeJS.Timeout | undefined

function sendOlder(): void {
  const due = older
  older = newer
  newer = []
  if (older.length === 0) {
    clearInterval(timer)
    timer = undefined
  }
  for (const response of due) response.sendHead()
}
