import { type CloseReason, closeReasons } from '@rejoin/protocol'

/** Why a hub turned a reader away, in its own words. */
export interface Refusals {
  /** As the global one, and listens on the way. */
  readonly fetch: typeof globalThis.fetch
  /** What the last answer said, when it was a refusal that says why. */
  readonly reason: CloseReason | undefined
}

/**
 * The client goes by the status of a refusal and by its `Retry-After`, and has no use for the words in its body (§4.12). A
 * person who watches has.
 */
export function createRefusals(): Refusals {
  let reason: CloseReason | undefined
  return {
    async fetch(input, init) {
      reason = undefined
      const response = await fetch(input, init)
      if (response.status === 503) reason = await reasonOf(response.clone())
      return response
    },
    get reason() {
      return reason
    },
  }
}

async function reasonOf(response: Response): Promise<CloseReason | undefined> {
  // Others than a hub say it in other forms, at any length.
  if (!response.headers.get('content-type')?.startsWith('application/json')) return undefined
  const { error }: { error?: { code?: unknown } } = Object(await response.json().catch(() => null))
  return closeReasons.find((each) => each === error?.code)
}
