import { createHash } from 'node:crypto'
import type { IdFormats } from '@rejoin/protocol'
import { retainLimits, type WindowOptions } from '../../contract.ts'
import { type KeyLimits, retryHorizonMs } from '../../idempotency.ts'
import type { ServerIdentity } from '../checks.ts'
import { append } from './append.ts'
import { budget } from './budget.ts'
import { common } from './common.ts'
import { read } from './read.ts'
import { upkeep } from './upkeep.ts'

/** A script as Redis knows it. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export interface ScriptSettings {
  /** With its hash tag: all keys of a log lie in one slot of a Cluster. */
  readonly prefix: string
  /** Names this opening of the log among all that write to it. */
  readonly writer: string
  readonly range: IdFormats['range']
  readonly window: Required<WindowOptions>
  /** Of channels and patterns that have another one. */
  readonly windows: ReadonlyMap<string, Required<WindowOptions>>
  readonly feed: { readonly maxAgeMs: number; readonly maxBytes: number }
  readonly idempotency: KeyLimits
  readonly forgetAfterMs: number
  /** What all channels may hold together; undefined when only their windows bound them. */
  readonly maxBytes: number | undefined
}

/** Of the layout in Redis. One written by a later Rejoin is rejected, because it would be misread. */
export const formatVersion = 4

/** Of an idempotency key's digest, which the tag of its publisher stands behind. */
export const digestChars = 22

/** Calls of one hub whose answers are remembered. It never has half as many under way. */
export const slots = 1024

/**
 * The script of one hub on one server process. Its settings and the identity of that process stand in its text, so its
 * name is known to that process alone: a command that a client library sends again to another one, say a replica that was
 * promoted, is answered NOSCRIPT, and cannot append to a log that has lost its newest events.
 *
 * @param nonce - new whenever a text may have reached another process than the one it names
 */
export function scriptFor(settings: ScriptSettings, server: ServerIdentity, nonce: string): Script {
  const source = [`-- ${nonce}`, constants(settings, server), common, budget, append, read, upkeep, dispatch].join('\n')
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}

/** Tells which process answers on a connection. */
export const probe = "return redis.call('INFO', 'server', 'replication')"

/**
 * The keys without which nothing can be decided. Every call names them, so that a Redis Cluster that is moving them from one
 * node to another rejects the call (TRYAGAIN) instead of running it beside half of a log.
 */
export function keysOf(prefix: string): readonly string[] {
  return ['log', 'feed', 'channels', 'names'].map((name) => prefix + name)
}

function constants(settings: ScriptSettings, { run, lineage }: ServerIdentity) {
  const { prefix, writer, range, window, windows, feed, idempotency, forgetAfterMs, maxBytes } = settings
  const values: Record<string, string | number | boolean> = {
    run,
    lineage,
    prefix,
    logKey: `${prefix}log`,
    feedKey: `${prefix}feed`,
    channelsKey: `${prefix}channels`,
    namesKey: `${prefix}names`,
    keyedKey: `${prefix}keyed`,
    agesKey: `${prefix}ages`,
    // In Lua, false is no bound.
    maxHeld: maxBytes ?? false,
    onceKey: `${prefix}once`,
    onceOrderKey: `${prefix}once-order`,
    onceCountsKey: `${prefix}once-counts`,
    branchesKey: `${prefix}branches`,
    sweepKey: `${prefix}sweep`,
    notesKey: `${prefix}notes`,
    ordersKey: `${prefix}orders`,
    heardKey: `${prefix}heard`,
    // About 200 KB, which a hub reads when it connects, and at a new branch.
    mostBranches: 4000,
    // About 2 MB. More revocations than that are a change of keys.
    mostOrders: 10_000,
    writerKey: `${prefix}w:${writer}`,
    formatVersion,
    hybrid: range.kind === 'hybrid',
    maxSeq: range.maxSeq,
    minMs: range.minMs,
    feedAgeMs: feed.maxAgeMs,
    feedBytes: feed.maxBytes,
    onceAgeMs: idempotency.maxAgeMs,
    onceKeys: idempotency.maxKeys,
    onceRoom: idempotency.maxRecentKeys,
    onceHorizonMs: retryHorizonMs,
    onceDigestChars: digestChars,
    forgetAfterMs,
    retainKeys: retainLimits.keys,
    retainBytes: retainLimits.bytes,
    slots,
    // A hub that is gone sends nothing again; one that is here writes more often than that.
    writerTtlMs: 86_400_000,
    // A few milliseconds, in which Redis answers nobody else.
    searchAtMost: 1000,
  }
  const lines = Object.entries(values).map(([name, value]) => `local ${name} = ${literal(value)}`)
  const own = [...windows].map(([name, window]) => `[${literal(name)}] = ${windowTable(window)}`)
  return [
    ...lines,
    `local window = ${windowTable(window)}`,
    `local ownWindows = ${own.length === 0 ? 'nil' : `{ ${own.join(', ')} }`}`,
    'local steps = {}',
  ].join('\n')
}

function windowTable(window: Required<WindowOptions>): string {
  // A window that is full lets go of one event for each that comes. In steps of a 64th, that costs a tenth.
  const bounds = { ...window, slack: Math.floor(window.maxEvents / 64) }
  return `{ ${Object.entries(bounds)
    .map(([name, value]) => `${name} = ${literal(value)}`)
    .join(', ')} }`
}

function literal(value: string | number | boolean): string {
  if (value === Number.POSITIVE_INFINITY) return 'math.huge'
  return typeof value === 'string' ? `'${value.replaceAll(/[\\']/g, '\\$&')}'` : String(value)
}

const dispatch = `
local answer = steps[ARGV[1]]()
if heldChange ~= 0 then redis.call('HINCRBY', logKey, 'held', whole(heldChange)) end
return answer
`
