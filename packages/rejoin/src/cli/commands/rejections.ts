import { type CloseReason, closeReasons } from '@rejoin/protocol'
import { obstacleTo } from './unreachable.ts'

/** Why a reader gets no stream, beyond what the client tells. */
export interface Rejections {
  /** As the global one, and listens on the way. */
  readonly fetch: typeof globalThis.fetch
  /** What the last answer said, when it was a rejection that says why. */
  readonly reason: CloseReason | undefined
  /** What is wrong with the address or the certificate, when the last request failed by that. */
  readonly obstacle: string | undefined
}

/**
 * The client goes by the status of a rejection and by its `Retry-After`, and has no use for the words in its body (§4.12). A
 * person who watches has.
 */
export function createRejections(url: string): Rejections {
  let reason: CloseReason | undefined
  let obstacle: string | undefined
  return {
    async fetch(input, init) {
      reason = undefined
      obstacle = undefined
      const response = await fetch(input, init).catch(async (error) => {
        obstacle = (await obstacleTo(url, error))?.message
        throw error
      })
      if (response.status === 503) reason = await reasonOf(response.clone())
      return response
    },
    get reason() {
      return reason
    },
    get obstacle() {
      return obstacle
    },
  }
}

async function reasonOf(response: Response): Promise<CloseReason | undefined> {
  // Others than a hub say it in other forms, at any length.
  if (!response.headers.get('content-type')?.startsWith('application/json')) return undefined
  const { error }: { error?: { code?: unknown } } = Object(await response.json().catch(() => null))
  return closeReasons.find((each) => each === error?.code)
}
