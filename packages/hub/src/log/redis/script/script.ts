import { createHash } from 'node:crypto'
import type { IdFormats } from '@rejoin/protocol'
import type { Complete } from '../../../with-defaults.ts'
import { retainLimits, type WindowOptions } from '../../contract.ts'
import { type KeyLimits, retryHorizonMs } from '../../idempotency.ts'
import type { ServerIdentity } from '../checks.ts'
import { lua } from './lua.ts'

/** The text of a script, and the digest by which Redis knows it. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export interface ScriptSettings {
  /** The prefix with its hash tag, by which all keys of a log lie in one slot of a Cluster. */
  readonly prefix: string
  /** The name of this opening of the log among all openings that write to it. */
  readonly writer: string
  readonly range: IdFormats['range']
  readonly window: Complete<WindowOptions>
  /** The windows of channels and patterns that have one of their own. */
  readonly windows: ReadonlyMap<string, Complete<WindowOptions>>
  readonly feed: { readonly maxAgeMs: number; readonly maxBytes: number }
  readonly idempotency: KeyLimits
  readonly forgetAfterMs: number
  /** The bytes that all channels may hold together; undefined when only their windows bound them. */
  readonly maxBytes: number | undefined
}

/** The version of the layout in Redis. This Rejoin rejects a log with another version, because it would misread it. */
export const formatVersion = 4

/** The version of a log in which a loss was marked. Earlier versions of Rejoin would read over a mark, so they reject it. */
export const markedVersion = 5

/** The length of an idempotency key's digest. The tag of the publisher follows it. */
export const digestChars = 22

/** How many calls of one hub the script remembers the answers of. A hub never has more than half as many under way. */
export const slots = 1024

/**
 * The script of one hub on one server process. Its text contains the settings and the identity of that process, so only that
 * process knows its digest. A client library may send a command again to another process, for example to a replica that was
 * promoted. That process answers NOSCRIPT, so the command cannot append to a log that has lost its newest events.
 *
 * @param nonce - has to be new when an earlier text may have reached another process than the one that it names
 */
export function scriptFor(settings: ScriptSettings, server: ServerIdentity, nonce: string): Script {
  const source = [`-- ${nonce}`, constants(settings, server), ...lua].join('\n')
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/** Tells which process answers on a connection. */
export const probe = "return redis.call('INFO', 'server', 'replication')"

/**
 * The keys that every step needs, and that every call names. While a Redis Cluster moves them from one node to another, it
 * rejects the call (TRYAGAIN) instead of running it on half of a log.
 */
export function keysOf(prefix: string): readonly string[] {
  return ['log', 'feed', 'channels', 'names'].map((name) => prefix + name)
}

function constants(settings: ScriptSettings, { run, lineage }: ServerIdentity) {
  const { prefix, writer, range, window, windows, feed, idempotency, forgetAfterMs, maxBytes } = settings
  const values: Record<string, string | number | boolean> = {
    run,
    lineage,
    keyPrefix: prefix,
    logKey: `${prefix}log`,
    feedKey: `${prefix}feed`,
    channelsKey: `${prefix}channels`,
    namesKey: `${prefix}names`,
    keyedKey: `${prefix}keyed`,
    agesKey: `${prefix}ages`,
    marksKey: `${prefix}marks`,
    // A failover makes one or two. Every read looks at all of them.
    mostMarks: 64,
    markedVersion,
    // The script takes false for no bound.
    maxHeld: maxBytes ?? false,
    onceKey: `${prefix}once`,
    onceOrderKey: `${prefix}once-order`,
    onceCountsKey: `${prefix}once-counts`,
    branchesKey: `${prefix}branches`,
    sweepKey: `${prefix}sweep`,
    notesKey: `${prefix}notes`,
    ordersKey: `${prefix}orders`,
    heardKey: `${prefix}heard`,
    // These take about 2 MB. For more revocations than that, the operator should change the signing key.
    mostOrders: 10_000,
    writerKey: `${prefix}w:${writer}`,
    formatVersion,
    hybrid: range.kind === 'hybrid',
    maxSeq: range.maxSeq,
    minMs: range.minMs,
    maxMs: range.maxMs,
    feedAgeMs: feed.maxAgeMs,
    feedBytes: feed.maxBytes,
    onceAgeMs: idempotency.maxAgeMs,
    onceKeys: idempotency.maxKeys,
    onceCapacity: idempotency.maxRecentKeys,
    onceHorizonMs: retryHorizonMs,
    onceDigestChars: digestChars,
    forgetAfterMs,
    retainKeys: retainLimits.keys,
    retainBytes: retainLimits.bytes,
    slots,
    // A hub that is gone repeats no call, and a hub that is here writes more often than that.
    writerTtlMs: 86_400_000,
    // Entries per search. They take a few milliseconds, in which Redis answers nobody else.
    searchAtMost: 1000,
  }
  const lines = Object.entries(values).map(([name, value]) => `local ${name} = ${literal(value)}`)
  const own = [...windows].map(([name, window]) => `[${literal(name)}] = ${windowTable(window)}`)
  return [
    ...lines,
    `local window = ${windowTable(window)}`,
    `local ownWindows = ${own.length === 0 ? 'nil' : `{ ${own.join(', ')} }`}`,
  ].join('\n')
}

function windowTable(window: Complete<WindowOptions>): string {
  // A full window would trim one event for each that comes. In steps of a 64th of the window, that costs a tenth as much.
  const bounds = { ...window, slack: Math.floor(window.maxEvents / 64) }
  return `{ ${Object.entries(bounds)
    .map(([name, value]) => `${name} = ${literal(value)}`)
    .join(', ')} }`
}

function literal(value: string | number | boolean): string {
  if (value === Number.POSITIVE_INFINITY) return 'math.huge'
  return typeof value === 'string' ? `'${value.replaceAll(/[\\']/g, '\\$&')}'` : String(value)
}
