import type { SnapshotOptions } from '@rejoin/hub'
import { checkSelector, narrowestOf, RejoinError } from '@rejoin/protocol'
import { askWebhook, type Webhook } from './webhook.ts'

/** Where readers of some channels get their state when part of its history is gone: an address of theirs, or our webhook. */
export type SnapshotRule = { readonly url: string } | Webhook

/** What the hub does at a gap, by rules for channels and patterns. The narrowest name counts. */
export function snapshotsBy(
  rules: Readonly<Record<string, SnapshotRule>>,
  onWarning: (message: string) => void,
): Pick<SnapshotOptions, 'snapshot' | 'snapshotUrl'> {
  const named = new Map(Object.entries(rules))
  for (const [name, rule] of named) checkRule(name, rule)
  const warn = sparingly(onWarning)

  /** The rule that all channels share. One state for channels of two rules there is not. */
  function ruleOf(channels: readonly string[]): SnapshotRule | undefined {
    const [first, ...others] = channels.map((channel) => narrowestOf(named, channel))
    return others.every((other) => other === first) ? first : undefined
  }

  return {
    async snapshot(channels) {
      const rule = ruleOf(channels)
      if (!rule || 'url' in rule) return undefined
      try {
        return await askWebhook(rule, channels)
      } catch (error) {
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

/** A rule for what is no channel would never count, and readers cannot ask an address that is none. */
function checkRule(name: string, rule: SnapshotRule): void {
  checkSelector(name)
  if (!('url' in rule) || /^(?:https?:\/\/|\/)\S+$/.test(rule.url)) return
  throw new RejoinError(
    `The url of snapshots.${name} is ${JSON.stringify(rule.url)}. Give an address that begins with http://, https:// or /.`,
    { code: 'invalid-option' },
  )
}

/**
 * The address for these channels: `{channel}` stands for the name, and where it does not occur the channels are in the query.
 * Several channels do not fit into one `{channel}`: then there is no address.
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

/** A webhook that is down fails for every reader that returns; the operator needs to hear it once in a while. */
function sparingly(onWarning: (message: string) => void): (message: string) => void {
  let quietUntil = 0
  return (message) => {
    const now = performance.now()
    if (now < quietUntil) return
    quietUntil = now + warnEveryMs
    onWarning(message)
  }
}
