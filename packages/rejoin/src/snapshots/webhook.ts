import { JsonText } from '@rejoin/hub/internal'

/** A program of the operator. The hub asks it for the state of channels. */
export interface Webhook {
  /** The URL to which the hub posts `{"channels": [...]}`. It answers 200 with the state as JSON, or 204 without a state. */
  readonly webhook: string
  /**
   * The `Authorization` header of the request.
   * @defaultValue none
   */
  readonly authorization?: string | undefined
  /**
   * The longest answer, in bytes. With a longer one, readers get no snapshot.
   * @defaultValue 1048576
   */
  readonly maxBytes?: number | undefined
}

/**
 * The state of these channels; undefined when the webhook has none. Follows no redirect, because it could lead our credentials to
 * another host. Rejects when the answer is not 200 or 204, is no JSON or is too long.
 *
 * @param signal - ends the request: nobody waits for the state any more
 */
export async function askWebhook(
  { webhook, authorization, maxBytes = 1024 * 1024 }: Webhook,
  channels: readonly string[],
  signal: AbortSignal,
): Promise<JsonText | undefined> {
  const response = await fetch(webhook, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(authorization === undefined ? {} : { Authorization: authorization }),
    },
    body: JSON.stringify({ channels }),
    redirect: 'manual',
    signal,
  })
  if (response.status === 204) return undefined
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`it answered ${response.status}, and 200 or 204 is expected`)
  }
  const text = await textOf(response, maxBytes)
  // Only a check: readers could not read what is no JSON.
  JSON.parse(text)
  return new JsonText(text)
}

async function textOf(response: Response, maxBytes: number): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  // To throw out of this loop cancels the body.
  for await (const piece of response.body ?? []) {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw new Error(`its answer is over ${maxBytes} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
