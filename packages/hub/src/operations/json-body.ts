import type { IncomingMessage } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import { createBodyParts } from '../http/body-parts.ts'
import { discardBody } from '../http/unwanted-body.ts'
import { jsonMistake } from '../json-mistake.ts'

/** The JSON value in a request's body; null for an empty body. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const text = Buffer.from(await readBytes(request, maxBytes)).toString('utf8')
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

function readBytes(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const parts = createBodyParts(maxBytes)
    const take = (part: Buffer) => {
      try {
        parts.add(part)
      } catch {
        request.off('data', take)
        parts.clear()
        discardBody(request)
        reject(new RejoinError(`The body is over ${maxBytes} bytes. Send less.`, { code: 'too-large' }))
      }
    }
    request.on('data', take)
    request.once('end', () => resolve(parts.joined()))
    // A requester that leaves in the middle never sees this answer, and it must not be reported as a failure of the hub.
    request.once('error', (cause) => {
      reject(new RejoinError('The body broke off. Send it as a whole.', { code: 'invalid-data', cause }))
    })
  })
}
