import type { Clock } from './clock.ts'

/**
 * Reads why a hub rejects a request (§5.7). Another server may send JSON of the same form.
 *
 * @param body - left unlocked, so that the caller can cancel it
 * @param type - the content type of the body; only JSON is read
 * @returns undefined when the body has no such message, or is too long or too slow
 */
export async function readMessage(body: Response['body'], type: string, clock: Clock): Promise<string | undefined> {
  if (!body || !type.includes('json')) return
  const reader = body.getReader()
  // Ends a pending read as if the body were complete.
  const timer = clock.setTimeout(() => void reader.cancel().catch(() => undefined), maxMs)
  const decoder = new TextDecoder()
  let text = ''
  try {
    while (text.length <= maxLength) {
      const { done, value } = await reader.read()
      if (done) return messageIn(text)
      text += decoder.decode(value, { stream: true })
    }
  } catch {
    // The body was cut, or is not JSON.
  } finally {
    clock.clearTimeout(timer)
    reader.releaseLock()
  }
}

function messageIn(text: string): string | undefined {
  const { message } = Object(Object(JSON.parse(text)).error) as { message?: unknown }
  return typeof message === 'string' ? message : undefined
}

/** Until then the stream still shows its old state. */
const maxMs = 2000

/** In characters. A hub's messages have a few hundred. */
const maxLength = 4096
