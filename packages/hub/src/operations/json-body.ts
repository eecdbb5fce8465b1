import type { IncomingMessage } from 'node:http'
import { RejoinError } from '@rejoin/protocol'

/** The JSON value that a request's body holds; null when there is none. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const text = (await readBytes(request, maxBytes)).toString('utf8')
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new RejoinError('The body is not JSON. GET /openapi.json says what belongs there.', {
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
    // Whoever leaves in the middle is not told, but is no failure of ours either.
    request.once('error', (cause) => {
      reject(new RejoinError('The body broke off. Send it as a whole.', { code: 'invalid-data', cause }))
    })
  })
}
