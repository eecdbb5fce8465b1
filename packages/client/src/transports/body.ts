/**
 * Reads the body of a response as text, in pieces as they arrive.
 *
 * @param signal - stops reading and cancels the reader: a user's `fetch` may not pass the signal on, and the connection
 * would stay open
 * @param onText - reading waits for its promise, and stops when the promise resolves to true
 */
export async function readBody(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onText: (text: string) => Promise<unknown>,
): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  // `cancel` rejects for a body that has already failed, and nothing is left to cancel.
  const cancel = () => reader.cancel().catch(() => undefined)
  // Assigned and not added: a run of polls reads many bodies under one signal, and would add a listener for each.
  signal.onabort = cancel
  if (signal.aborted) return cancel()
  for (;;) {
    const { done, value } = await reader.read()
    if (done || signal.aborted) return
    if (await onText(decoder.decode(value, { stream: true }))) return cancel()
  }
}
