import type { Clock } from './clock.ts'

/**
 * What a hub says about why it rejects a request (§5.7). A server of another kind may send JSON of the same form.
 *
 * @param body - left unlocked: whoever called lets go of it
 * @param type - of the body; what is not JSON is not read
 * @returns undefined when the body says something else, or is too long or too slow. The status alone has to do then.
 */
export async function readMessage(body: Response['body'], type: string, clock: Clock): Promise<string | undefined> {
  if (!body || !type.includes('json')) return
  const reader = body.getReader()
  // Ends a read that waits, as if the body were over.
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
    // The body was cut, or is no JSON.
  } finally {
    clock.clearTimeout(timer)
    reader.releaseLock()
  }
}

function messageIn(text: string): string | undefined {
  const { message } = Object(Object(JSON.parse(text)).error) as { message?: unknown }
  return typeof message === 'string' ? message : undefined
}

/** The stream shows nothing new until then. */
const maxMs = 2000

/** In characters. The messages of a hub have a few hundred. */
const maxLength = 4096
