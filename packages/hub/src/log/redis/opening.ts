import { createEpoch, createIdFormats, type IdCodec, type IdFormats, ulid } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { invalidOption } from '../../invalid-option.ts'
import { idsOf, openFormats } from '../stored-formats.ts'
import { parseFormats } from './branches.ts'
import { noAofWarning, replicasWarning, type ServerFacts } from './checks.ts'
import type { Connector } from './client.ts'
import { type Confirmation, createConfirmation } from './confirmation.ts'
import { parsePosition } from './entry.ts'
import { createFlushing, type Flushing, flushingCommand } from './flushing.ts'
import { createHandshake } from './handshake.ts'
import { createLink, type Link } from './link.ts'
import type { RedisSettings } from './options.ts'
import { keysOf, type ScriptSettings } from './script/script.ts'
import { createKnownState, type KnownState, seenText } from './state.ts'
import { createWitnesses } from './witnesses.ts'

/**
 * Connects to the log, or makes it where there is none, and learns how safe an answered publish is. Rejects a server on which
 * the log could not keep its promises.
 */
export async function openLog(
  connector: Connector,
  settings: RedisSettings,
  environment: Environment,
): Promise<OpenedLog> {
  const { codec, durability, replicas, answerWithinMs, warn } = settings
  const formats = createIdFormats([{ codec: codec ?? ulid() }])
  const formatsOf = (ids: string) => openFormatsOf(ids, codec, settings.prefix)
  const script = scriptSettingsOf(settings, formats)
  const state = createKnownState(formats, formatsOf)
  const now = () => (settings.clock === 'hub' ? String(Math.max(0, Math.floor(environment.now()))) : '')
  let facts: ServerFacts = { aof: false, waitAof: false, replicas: 0 }
  const onServer = (found: ServerFacts, isNew: boolean) => {
    facts = found
    if (!isNew) return
    if (!found.aof) warn(noAofWarning)
    if (durability === 'replicated' && found.replicas < replicas) warn(replicasWarning(found.replicas, replicas))
  }
  const ids = idsOf(codec ?? ulid())
  const witnesses = createWitnesses(script.prefix, script.writer)
  const handshake = createHandshake({ settings: script, ids, formatsOf, state, witnesses, environment, now, onServer })
  const link = createLink({ connector, handshake, keys: keysOf(script.prefix), answerWithinMs })
  try {
    const flushing = createFlushing(warn)
    const [head, flushed] = await link.stepThen(flushingCommand, 'head', '', '')
    state.see(parsePosition(head[0] as string))
    flushing.learn(flushed)
    const writeStep = () => ['probe', seenText(state), now()]
    const waiting = { replicas, link, state, flushing, answerWithinMs, facts: () => facts, writeStep }
    const confirmation = durability === 'server' ? undefined : createConfirmation({ durability, ...waiting })
    await confirmation?.check()
    const leave = () =>
      link.last((ready) =>
        witnesses.leave(ready.connection, ready.process, async (left) => {
          const [last, epoch] = (await link.stepOver(ready, 'leave', seenText(state), '', left)) as string[]
          return { left, epoch: epoch ?? '', last: last ?? '' }
        }),
      )
    return { link, state, flushing, confirmation, keyPrefix: script.prefix, now, leave }
  } catch (error) {
    link.close()
    throw error
  }
}

export interface OpenedLog {
  readonly link: Link
  readonly state: KnownState
  readonly flushing: Flushing
  /** Undefined when a publisher waits for nothing but the answer of Redis. */
  readonly confirmation: Confirmation | undefined
  /** All keys of the log start with it. */
  readonly keyPrefix: string
  /** The time to date events with, '' for that of Redis. */
  now(): string
  /** Leaves a proof for the next hub. Only for a hub that writes nothing more. */
  leave(): Promise<void>
}

function scriptSettingsOf(settings: RedisSettings, { range }: IdFormats): ScriptSettings {
  const { prefix, window, windows, feed, idempotency, forgetAfterMs, maxBytes } = settings
  const bounds = { window, windows: windows.named, feed, idempotency, forgetAfterMs, maxBytes }
  return { prefix: `{${prefix}}:`, writer: createEpoch(Math.random) + createEpoch(Math.random), range, ...bounds }
}

/** Rejects a log that counts its events when no codec was named: without one, the script of this hub dates events. */
function openFormatsOf(ids: string, codec: IdCodec | undefined, prefix: string): IdFormats {
  const formats = openFormats(parseFormats(ids), codec, `The log under ${prefix}`)
  if (formats.range.kind === (codec ?? ulid()).clock) return formats
  throw invalidOption(`The log under ${prefix} counts its events. Open it with the codec sequence().`)
}
