/**
 * Reads the body of a response as text, in pieces as they arrive.
 *
 * @param signal - ends it, and cancels the reader: a user's `fetch` may not pass the signal on, and the connection would
 * stay open
 * @param onText - reading waits for its promise, and stops when that gives true
 */
export async function readBody(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onText: (text: string) => Promise<unknown>,
): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  // A body that has failed already rejects, and there is nothing left to cancel.
  const cancel = () => reader.cancel().catch(() => undefined)
  // Not one more listener for each body: a run of polls reads many of them under one signal.
  signal.onabort = cancel
  if (signal.aborted) return cancel()
  for (;;) {
    const { done, value } = await reader.read()
    if (done || signal.aborted) return
    if (await onText(decoder.decode(value, { stream: true }))) return cancel()
  }
}
