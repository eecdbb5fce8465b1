import type { IncomingMessage } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import type { IncomingBody } from '../hub/publish/incoming.ts'
import { tooLarge } from './answer.ts'
import { createBodyParts } from './body-parts.ts'

/** Reads the body of a request, unless the hub rejects it before it is whole. */
export interface BodyReader {
  /** Rejects when the body is too large, breaks off, or `drop` was called. Tells `incoming` of each part that arrives. */
  read(incoming: IncomingBody): Promise<Uint8Array>
  /** Drops the parts that have arrived, and makes `read` reject with this error. */
  readonly drop: (error: RejoinError) => void
}

/** Listens to the request's events: an async iterator would make a publish over HTTP 14 % slower (`bench -- publish`). */
export function createBodyReader(request: IncomingMessage, maxBytes: number): BodyReader {
  const parts = createBodyParts(maxBytes)
  let drop: (error: RejoinError) => void = () => undefined

  function read(incoming: IncomingBody): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const take = (part: Buffer) => {
        try {
          parts.add(part)
        } catch (error) {
          drop(error as RejoinError)
          return
        }
        incoming.add(part.length)
      }
      drop = (error) => {
        request.off('data', take)
        parts.clear()
        reject(error)
      }
      request.once('end', () => {
        incoming.whole()
        // An HTTP/2 request that was reset in the middle emits 'end' like a whole request.
        if (request.aborted) reject(new RejoinError('The body broke off.', { code: 'invalid-data' }))
        else resolve(parts.joined())
      })
      request.once('error', reject)
      if (Number(request.headers['content-length']) > maxBytes) drop(tooLarge(maxBytes))
      else request.on('data', take)
    })
  }

  return { read, drop: (error) => drop(error) }
}
