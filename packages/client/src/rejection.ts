import type { Clock } from './clock.ts'
import type { Answer } from './connection-input.ts'

/**
 * Reads why a hub rejects a request (§5.7). Another server may send JSON of the same form.
 *
 * @param body - left unlocked, so that the caller can cancel it
 * @param type - the content type of the body; only JSON is read
 * @returns nothing when the body has no such message, or is too long or too slow
 */
export async function readRejection(body: Response['body'], type: string, clock: Clock): Promise<Rejection> {
  if (!body || !type.includes('json')) return {}
  const reader = body.getReader()
  // Ends a pending read as if the body were complete.
  const timer = clock.setTimeout(() => void reader.cancel().catch(() => undefined), maxMs)
  const decoder = new TextDecoder()
  let text = ''
  try {
    while (text.length <= maxLength) {
      const { done, value } = await reader.read()
      if (done) return rejectionIn(text)
      text += decoder.decode(value, { stream: true })
    }
  } catch {
    // The body was cut, or is not JSON.
  } finally {
    clock.clearTimeout(timer)
    reader.releaseLock()
  }
  return {}
}

function rejectionIn(text: string): Rejection {
  const { message, reason } = Object(Object(JSON.parse(text)).error) as Record<string, unknown>
  return {
    closeMessage: typeof message === 'string' ? message : undefined,
    reason: reasons.find((known) => known === reason),
  }
}

export type Rejection = Pick<Answer, 'closeMessage' | 'reason'>

/** Why a hub rejects readers for now (§4.12). */
const reasons = ['maintenance', 'drain', 'log-unavailable', 'overloaded'] as const

/** Until then the stream still shows its old state. */
const maxMs = 2000

/** In characters. A hub's messages have a few hundred. */
const maxLength = 4096
