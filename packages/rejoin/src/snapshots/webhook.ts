/** A program of the operator's that the hub asks for the state of channels. */
export interface Webhook {
  /** Where `{"channels": [...]}` is posted to. It answers 200 and the state as JSON, or 204 for none. */
  readonly webhook: string
  /** The `Authorization` header of the request. Left out: none. */
  readonly authorization?: string | undefined
  /**
   * The longest answer in bytes. A longer one is given up.
   * @defaultValue 1048576
   */
  readonly maxBytes?: number | undefined
}

/**
 * The state of these channels, undefined where the webhook has none. Follows no redirect: one could lead to another host, with
 * our credentials. Rejects when the answer is not 200 or 204, is no JSON or is too long. The hub bounds the time.
 */
export async function askWebhook(
  { webhook, authorization, maxBytes = 1024 * 1024 }: Webhook,
  channels: readonly string[],
): Promise<unknown> {
  const response = await fetch(webhook, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(authorization === undefined ? {} : { Authorization: authorization }),
    },
    body: JSON.stringify({ channels }),
    redirect: 'manual',
    // Longer than any snapshot is waited for; what is over is not left running.
    signal: AbortSignal.timeout(30_000),
  })
  if (response.status === 204) return undefined
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`it answered ${response.status}, and 200 or 204 is expected`)
  }
  return JSON.parse(await textOf(response, maxBytes))
}

async function textOf(response: Response, maxBytes: number): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop by an error cancels the body.
  for await (const piece of response.body ?? []) {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw new Error(`its answer is over ${maxBytes} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
