import type { Clock } from './clock.ts'
import type { Answer } from './connection-input.ts'
import type { Answered, Send } from './request.ts'
import { readRetryAfter } from './retry-after.ts'

/**
 * Reads an answer that is not as plain as a hub's stream: a redirect, a rejection with its reason (§5.7), another content
 * type, or what is left of a head that was cut.
 *
 * @param essence - the content type of a good answer
 * @param send - sends the request again
 * @returns no answer when the connection was cut within the head
 */
export async function readAnswer(response: Response, essence: string, clock: Clock, send: Send): Promise<Answered> {
  const { status, headers, body } = await followed(response, send)
  const type = headers.get('content-type') ?? ''
  // When a connection is cut within the head, Chromium takes the part that arrived for the whole: a status of `200` or
  // its first digits, and the beginning of the type.
  const isPart = status < 201 && type !== essence && essence.startsWith(type)
  // Without a type, the head was whole if the body goes on.
  if (isPart && (type || status < 200 || (await readText(body, clock, 0)) !== undefined)) return { body }
  const answer = {
    status,
    // The last of several types counts, as in a browser.
    isStream: status === 200 && type.split(',').pop()!.split(';')[0]!.trim().toLowerCase() === essence,
    retryAfterMs: readRetryAfter(headers, clock.now()),
    ...(status > 399 && type.includes('json') && rejectionIn(await readText(body, clock, maxLength))),
  }
  return { body, answer }
}

/**
 * Follows a redirect without the user's credentials: a browser does not show where it leads.
 *
 * @returns an answer of our own when the redirect leads nowhere. The server can be reached, so quick retries would not
 * help, and each may cost 20 requests.
 */
async function followed(response: Response, send: Send): Promise<Response> {
  const { status, type, body } = response
  // A status below 100 is the rest of an answer that was cut off.
  if (type !== 'opaqueredirect' && (status < 300 || status > 399)) return response
  await body?.cancel()
  return send(new Headers(), 'follow').catch(() => {
    const message = 'The redirect leads nowhere: a loop, or a server without an answer. Give the final URL.'
    const headers = { 'retry-after': '3' }
    return Response.json({ error: { message, reason: 'redirect' } }, { status: 508, headers })
  })
}

/** Another server may send JSON of the same form. */
function rejectionIn(text = ''): Pick<Answer, 'closeMessage' | 'reason'> {
  try {
    const { message, reason } = Object(Object(JSON.parse(text)).error) as Record<string, unknown>
    return {
      closeMessage: typeof message === 'string' ? message : undefined,
      reason: reasons.find((known) => known === reason),
    }
  } catch {
    // Not JSON, or only a part of it.
    return {}
  }
}

/** Why a hub rejects readers for now (§4.12), and our own reason. */
const reasons = ['maintenance', 'drain', 'log-unavailable', 'overloaded', 'redirect'] as const

/**
 * @param limit - in characters
 * @returns the text of the body as far as it arrived; nothing when the body is longer than the limit, or too slow
 */
async function readText(body: Response['body'], clock: Clock, limit: number): Promise<string | undefined> {
  let text = ''
  if (!body) return text
  let isLate = false
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const timer = clock.setTimeout(() => {
    isLate = true
    // Ends a pending read as if the body were complete.
    void reader.cancel().catch(() => undefined)
  }, maxMs)
  try {
    while (text.length <= limit) {
      const { done, value } = await reader.read()
      if (done) return isLate ? undefined : text
      text += decoder.decode(value, { stream: true })
    }
  } catch {
    // The body was cut.
    return text
  } finally {
    clock.clearTimeout(timer)
    reader.releaseLock()
  }
  return undefined
}

/** Until then the stream still shows its old state. */
const maxMs = 2000

/** In characters. A hub's messages have a few hundred. */
const maxLength = 4096
