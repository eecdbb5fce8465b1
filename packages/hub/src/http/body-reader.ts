import type { IncomingMessage } from 'node:http'
import { RejoinError } from '@rejoin/protocol'
import type { Account } from '../hub/byte-ledger.ts'
import { invalidOption } from '../invalid-option.ts'
import { bodyEvicted } from './answer.ts'
import { createBodyParts } from './body-parts.ts'

/** The body of a request, and its entry in the account of bodies. */
export interface BodyReader {
  /** Rejects when the body is too large, breaks off, or is evicted before it is complete. */
  read(): Promise<Uint8Array>
  close(): void
}

/** Listens to the request's events: an async iterator would make a publish over HTTP 14 % slower (`bench -- publish`). */
export function createBodyReader(request: IncomingMessage, maxBytes: number, account: Account): BodyReader {
  const parts = createBodyParts(maxBytes)
  let fail: (error: unknown) => void = () => undefined
  const entry = account.open({ pending: 0, evict: () => fail(bodyEvicted()) })

  function listen(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const take = (part: Buffer) => {
        try {
          parts.add(part)
        } catch (error) {
          fail(error)
          return
        }
        entry.add(part.length)
      }
      fail = (error) => {
        request.off('data', take)
        parts.clear()
        reject(error)
      }
      request.once('end', () => {
        entry.pin()
        // An HTTP/2 request that was reset in the middle emits 'end' like a whole request.
        if (request.aborted) reject(new RejoinError('The body broke off.', { code: 'invalid-data' }))
        else resolve(parts.joined())
      })
      request.once('error', reject)
      request.on('data', take)
    })
  }

  return {
    async read() {
      if (request.readableEnded) {
        parts.add(bodyAtHand(request as { readonly body?: unknown }))
        return parts.joined()
      }
      parts.expect(Number(request.headers['content-length']))
      return listen()
    },
    close: () => entry.close(),
  }
}

/** The body that middleware has read before us and left on the request, as bytes or text. */
function bodyAtHand({ body }: { readonly body?: unknown }): Uint8Array {
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array) return body
  throw invalidOption(
    'The body was parsed before the hub could read it, and what was sent is lost. Mount the hub before the body parser.',
  )
}
