/**
 * Sends the heads of streams whose first bytes take long. A head goes out alone after half a second to a second.
 *
 * One timer for all streams of a handler. A timer for each stream would be 280 bytes, which the garbage collector moves while ten
 * thousand readers return.
 */
export interface LateHeads {
  add(stream: HeadWaiting): void
}

export interface HeadWaiting {
  /** Returns false, and does nothing, when the head is out or the stream is over. */
  sendHead(): boolean
}

// In a rush of readers, the first bytes wait for their turn. No client gives up a connection within a second.
const roundMs = 500
// A head takes up to 0.1 ms. More heads in one turn of the event loop would hold up live events.
const maxPerTurn = 64

/** @param failed - told the error of a response that middleware has broken. The other streams still get their heads. */
export function createLateHeads(failed: (error: unknown) => void): LateHeads {
  /** Wait for their first round. */
  let newer: HeadWaiting[] = []
  /** Wait for their second round. */
  let older: HeadWaiting[] = []
  /** Are sent now, some in each turn, from the index `next` on. */
  let due: HeadWaiting[] = []
  let next = 0
  let timer: NodeJS.Timeout | undefined

  function startRound(): void {
    const isSending = due.length > 0
    for (const stream of older) due.push(stream)
    older = newer
    newer = []
    if (older.length === 0) {
      clearInterval(timer)
      timer = undefined
    }
    if (!isSending) sendSome()
  }

  function sendSome(): void {
    for (let sent = 0; next < due.length; next += 1) {
      if (sent === maxPerTurn) {
        setImmediate(sendSome)
        return
      }
      if (send(due[next] as HeadWaiting)) sent += 1
    }
    due = []
    next = 0
  }

  function send(stream: HeadWaiting): boolean {
    try {
      return stream.sendHead()
    } catch (error) {
      failed(error)
      return true
    }
  }

  return {
    add(stream) {
      newer.push(stream)
      timer ??= setInterval(startRound, roundMs).unref()
    },
  }
}
