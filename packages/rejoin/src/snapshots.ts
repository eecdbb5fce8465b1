import type { SnapshotOptions } from '@rejoin/hub'
import { JsonText } from '@rejoin/hub/internal'
import { checkSelector, narrowestOf, RejoinError } from '@rejoin/protocol'

/** Where readers get the state of their channels after a gap: from a URL that they load, or from a webhook that the hub asks. */
export type SnapshotRule = { readonly url: string } | Webhook

/** The hub's snapshot options, by rules for channels and patterns. The narrowest name counts. */
export function snapshotsBy(
  rules: Readonly<Record<string, SnapshotRule>>,
  onWarning: (message: string) => void,
): Pick<SnapshotOptions, 'snapshot' | 'snapshotUrl'> {
  const named = new Map(Object.entries(rules))
  for (const [name, rule] of named) checkRule(name, rule)
  const warn = sparingly(onWarning)

  /** The rule that all channels share; undefined when they have different rules, because one snapshot cannot cover both. */
  function ruleOf(channels: readonly string[]): SnapshotRule | undefined {
    const [first, ...others] = channels.map((channel) => narrowestOf(named, channel))
    return others.every((other) => other === first) ? first : undefined
  }

  return {
    async snapshot(channels, { signal }) {
      const rule = ruleOf(channels)
      if (!rule || 'url' in rule) return undefined
      try {
        return await askWebhook(rule, channels, signal)
      } catch (error) {
        // Nobody waits for the state any more, which is not a failure of the webhook.
        if (signal.aborted && signal.reason.name !== 'TimeoutError') return undefined
        warn(
          `The snapshot webhook ${rule.webhook} failed: ${(error as Error).message}. Readers are told without a snapshot.`,
        )
        return undefined
      }
    },
    snapshotUrl(channels) {
      const rule = ruleOf(channels)
      return rule && 'url' in rule ? addressFor(rule.url, channels) : undefined
    },
  }
}

/** Throws for a name that is no selector, which would never match, and for a URL that readers cannot load. */
function checkRule(name: string, rule: SnapshotRule): void {
  checkSelector(name)
  if (!('url' in rule) || /^(?:https?:\/\/|\/)\S+$/.test(rule.url)) return
  throw new RejoinError(
    `The url of snapshots.${name} is ${JSON.stringify(rule.url)}. Give an address that begins with http://, https:// or /.`,
    { code: 'invalid-option' },
  )
}

/**
 * The URL for these channels. `{channel}` stands for the name of the channel; without it, the query names the channels. Several
 * channels do not fit into `{channel}`: then the result is undefined.
 */
function addressFor(template: string, channels: readonly string[]): string | undefined {
  const [only = '', ...others] = channels
  if (template.includes('{channel}')) {
    const path = only.split('/').map(encodeURIComponent).join('/')
    return others.length > 0 ? undefined : template.replaceAll('{channel}', path)
  }
  const query = channels.map((channel) => `channel=${encodeURIComponent(channel)}`).join('&')
  return `${template}${template.includes('?') ? '&' : '?'}${query}`
}

const warnEveryMs = 10_000

/** Warns at most every ten seconds: a webhook that is down fails for every reader that returns. */
function sparingly(onWarning: (message: string) => void): (message: string) => void {
  let quietUntil = 0
  return (message) => {
    const now = performance.now()
    if (now < quietUntil) return
    quietUntil = now + warnEveryMs
    onWarning(message)
  }
}

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
