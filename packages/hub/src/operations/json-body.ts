import type { IncomingMessage } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import { jsonMistake } from '../json-mistake.ts'

/** The JSON value in a request's body; null for an empty body. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const text = (await readBytes(request, maxBytes)).toString('utf8')
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RejoinError(`The body is not JSON: ${jsonMistake(cause)}. GET /openapi.json says what belongs there.`, {
      code: 'invalid-data',
      cause,
    })
  }
}

function readBytes(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let length = 0
    request.on('data', (part: Buffer) => {
      length += part.length
      // The rest is read and thrown away: unread, it would block the next request on this connection.
      if (length <= maxBytes) parts.push(part)
      else reject(new RejoinError(`The body is over ${maxBytes} bytes. Send less.`, { code: 'too-large' }))
    })
    request.once('end', () => resolve(Buffer.concat(parts)))
    // A requester that leaves in the middle never sees this answer, and it must not be reported as a failure of the hub.
    request.once('error', (cause) => {
      reject(new RejoinError('The body broke off. Send it as a whole.', { code: 'invalid-data', cause }))
    })
  })
}
