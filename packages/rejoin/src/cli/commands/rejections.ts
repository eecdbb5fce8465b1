import { type CloseReason, closeReasons } from '@rejoin/protocol'
import { obstacleTo } from './unreachable.ts'

/** Why a reader gets no stream, in more detail than the client tells. */
export interface Rejections {
  /** Like the global `fetch`, and notes why a request fails. */
  readonly fetch: typeof globalThis.fetch
  /** The reason in the last answer, if it was a rejection with a reason. */
  readonly reason: CloseReason | undefined
  /** The problem with the address or the certificate, if the last request failed because of one. */
  readonly obstacle: string | undefined
}

/** The client uses only the status of a rejection and its `Retry-After` (§4.12). A person also wants the reason in its body. */
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
  // Servers other than a hub send other formats, of any length.
  if (!response.headers.get('content-type')?.startsWith('application/json')) return undefined
  const { error }: { error?: { code?: unknown } } = Object(await response.json().catch(() => null))
  return closeReasons.find((each) => each === error?.code)
}
