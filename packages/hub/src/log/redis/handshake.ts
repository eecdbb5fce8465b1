import { createHash } from 'node:crypto'
import { createEpoch, type IdFormats, isAfter, type Position } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { invalidOption } from '../../invalid-option.ts'
import { drawBranchStep } from '../branch-step.ts'
import { mergedLines, parseStoredHistory } from './branches.ts'
import { checkServer, type ServerFacts, type ServerIdentity, unavailable } from './checks.ts'
import type { Connection } from './client.ts'
import { parsePosition, positionText } from './entry.ts'
import {
  formatVersion,
  keysOf,
  markedVersion,
  probe,
  type Script,
  type ScriptSettings,
  scriptFor,
} from './script/script.ts'
import { type KnownState, type Loss, seenText } from './state.ts'
import type { Witnesses } from './witnesses.ts'

/** A connection to a known server, with the script that only this server process knows. */
export interface ReadyConnection {
  readonly connection: Connection
  readonly script: Script
  /** The server's `run_id`. */
  readonly process: string
}

export interface HandshakeOptions {
  readonly settings: ScriptSettings
  /** The format of the ids, for a log that is made now. */
  readonly ids: string
  /** Reads the stored formats of a log, and rejects those that this hub cannot go on with. */
  formatsOf(ids: string): IdFormats
  readonly state: KnownState
  readonly witnesses: Witnesses
  readonly environment: Environment
  /** The time to date events with, '' for that of Redis. */
  now(): string
  /** Called at every handshake. `isNew` is true when this hub meets that server for the first time. */
  onServer(facts: ServerFacts, isNew: boolean): void
}

/**
 * Looks at the log over a new connection, or once more over a connection that has shown a change. Opens a branch when nothing
 * proves that the log still holds all acknowledged events.
 *
 * The proof is that the same process answers as before, and that it has not copied its data from another server since: in no
 * other way does Redis lose what it keeps in memory. A process that was started again, and a replica that took over, have
 * another `run_id`. A master that was a replica for a while has another `master_replid`.
 *
 * A hub that starts cannot know whether an older copy of the keys was put back into the same process. Unless another hub has
 * followed the log all the time, or the last hub has left a proof (`witnesses.ts`), the starting hub opens a branch. Older cursors
 * stay good, and cursors of lost events are past the fork.
 */
export function createHandshake(options: HandshakeOptions): Handshake {
  const { settings, ids, formatsOf, state, witnesses, environment, now, onServer } = options
  const keys = keysOf(settings.prefix)
  const readLeft = ['HGET', `${settings.prefix}log`, 'left']
  const scripts = new Map<string, Script>()

  async function handshake(connection: Connection, accept: (process: string) => void): Promise<ReadyConnection> {
    for (let round = 0; round < rounds; round += 1) {
      const server = checkServer.identity(checkServer.version(await ask(connection, probe, [])))
      accept(server.run)
      const script = await bringUpOn(connection, server)
      if (script) return { connection, script, process: server.run }
    }
    throw unavailable('its server or its log is replaced again and again')
  }

  /** @returns undefined when the server or its log was replaced between two commands, so that the caller has to look again */
  async function bringUpOn(connection: Connection, server: ServerIdentity): Promise<Script | undefined> {
    const name = `${server.run} ${server.lineage}`
    const isNew = !scripts.has(name)
    const script = scripts.get(name) ?? scriptFor(settings, server, createEpoch(Math.random))
    scripts.set(name, script)
    const step = (...args: string[]) => ask(connection, script.source, args) as Promise<string[]>

    // Taken before the question: by the time of the answer, this hub may have seen more over another connection.
    const { seen } = state
    const hello = readHello(await step('hello', '', ''))
    if (!isSameServer(hello, server)) {
      // The script has reached another process than the one that it names. Or the server has just got its first replica, and with
      // it another `master_replid`. The script must not be used any more.
      scripts.delete(name)
      return undefined
    }
    if (hello.role !== 'master') throw unavailable(`it is a ${hello.role}, which takes no events`)
    checkServer.policy(hello.policy)
    onServer(hello, isNew)
    const isVouchedFor = async () =>
      state.epoch !== '' ||
      (await witnesses.areThere(connection, server.run)) ||
      (await witnesses.isAsLeft(connection, server.run, hello))
    let lines = await bringUp(step, hello, seen, isVouchedFor)
    if (lines[0] === '!nameless') lines = await openBranch(step, hello.epoch, hello.top)
    if (lines[0]?.startsWith('!')) return undefined
    lines = await reportLoss(step, lines)
    if (lines[0]?.startsWith('!')) return undefined
    const merged = mergedLines(lines)
    if (merged) lines = await step('merge', '', '', digestOf(lines.slice(1)), ...merged)
    state.adopt(parseStoredHistory(lines))
    await witnesses.join(connection, server.run, async () => String((await connection.send(readLeft)) ?? ''))
    return script
  }

  async function bringUp(
    step: Step,
    hello: Hello,
    seen: Position | undefined,
    isVouchedFor: () => Promise<boolean>,
  ): Promise<string[]> {
    if (hello.logRun === '') {
      const number = (state.history.at(-1)?.number ?? -1) + newStep()
      const { maxSeq, minMs, maxMs } = state.formats.range
      // A log that this hub knew before keeps its ids.
      const written = state.ids || ids
      const first = [newEpoch(), written, seenText(state), String(number)]
      return step('create', '', now(), ...first, String(maxSeq), String(minMs), String(maxMs))
    }
    checkFormat(hello)
    if (hello.top === '') throw unavailable(noFeed(settings.prefix))
    const last = parsePosition(hello.last)
    const isStored = isSameServer(hello, { run: hello.logRun, lineage: hello.logLineage })
    const isProved = isStored && hello.top === hello.last && !(seen && isAfter(seen, last))
    if (isProved && (await isVouchedFor())) return step('history', '', '')
    const isBehind = hello.epoch === state.epoch && state.seen !== undefined && isAfter(state.seen, last)
    // Reports the loss in the step that opens the branch, so that no reader crosses the fork before the loss is on record.
    const loss = isBehind ? { fork: last, through: state.seen } : undefined
    return openBranch(step, hello.epoch, hello.top, loss as Loss | undefined)
  }

  /**
   * Reports events that this hub has seen past the fork of a branch that another hub opened. The other hub may not have seen
   * these events. One more branch puts their channels on record, and only readers of these channels are notified.
   */
  async function reportLoss(step: Step, found: readonly string[]): Promise<string[]> {
    let lines = [...found]
    for (let round = 0; round < rounds && !lines[0]?.startsWith('!'); round += 1) {
      const { history: stored } = parseStoredHistory(lines)
      const loss = state.lossIn(stored)
      const reported = loss?.branch?.reported
      if (!loss || (reported && loss.through && !isAfter(loss.through, reported))) break
      lines = await openBranch(step, stored.at(-1)?.epoch ?? '', '', loss)
      // The log does not know this hub's branch, so it cannot store how far the record goes. One report has to be enough.
      if (!loss.through && parseStoredHistory(lines).history.length > stored.length) break
    }
    return lines
  }

  function openBranch(step: Step, epoch: string, top = '', loss?: Loss): Promise<string[]> {
    const positions = [top, seenText(state)].filter((position) => position !== '')
    const floor = positions.reduce((a, b) => (isAfter(parsePosition(a), parsePosition(b)) ? a : b), '0-0')
    const named = [newEpoch(), String(newStep()), floor, newEpoch()]
    return step('branch', '', now(), epoch, ...named, ...(loss ? lossArguments(loss) : []))
  }

  function lossArguments({ branch, fork, through }: Loss): string[] {
    const lost = state.channels.past(fork)
    const channels = lost ? [...lost.keys()] : ['*']
    const since = branch ? positionText(branch.first) : ''
    return [through ? positionText(through) : '', branch?.epoch ?? '', since, ...channels]
  }

  function newEpoch(): string {
    return createEpoch(environment.random)
  }

  function newStep(): number {
    return drawBranchStep(environment.random)
  }

  function checkFormat({ version, ids: stored }: Hello): void {
    if (version !== String(formatVersion) && version !== String(markedVersion)) {
      throw invalidOption(
        `The log under ${settings.prefix} has format ${version}, and this Rejoin writes format ${formatVersion}. ` +
          'Use the version that made it, or choose another prefix.',
      )
    }
    formatsOf(stored)
  }

  // EVAL, not SCRIPT LOAD: EVAL has keys, by which a Cluster sends it to the node with the log.
  function ask(connection: Connection, source: string, args: readonly string[]): Promise<unknown> {
    return connection.send(['EVAL', source, String(keys.length), ...keys, ...args])
  }

  return handshake
}

/**
 * @param accept - gets the `run_id` of the process before anything is written, and throws when this process must not be used
 */
export type Handshake = (connection: Connection, accept: (process: string) => void) => Promise<ReadyConnection>

type Step = (...args: string[]) => Promise<string[]>

// Each further round means that Redis was emptied, or got its first replica, between two commands.
const rounds = 3

interface Hello extends ServerIdentity, ServerFacts {
  readonly policy: string
  readonly role: string
  readonly logRun: string
  readonly logLineage: string
  readonly last: string
  readonly epoch: string
  readonly version: string
  readonly ids: string
  /** The newest id of the feed, '' when there is no feed. */
  readonly top: string
  /** The name that the last hub gave to the log when it stopped; '' when it gave none. */
  readonly left: string
}

/** @param reply - names and values in turn */
function readHello(reply: readonly string[]): Hello {
  const fields: Record<string, string> = {}
  for (let index = 0; index < reply.length; index += 2) fields[reply[index] as string] = reply[index + 1] as string
  const { aof, waitAof, replicas } = fields
  return { ...(fields as never as Hello), aof: aof === '1', waitAof: waitAof === '1', replicas: Number(replicas) }
}

/** As `merge` in the script has it. */
function digestOf(branches: readonly string[]): string {
  return createHash('sha1').update(branches.join('\n')).digest('hex')
}

function isSameServer(a: ServerIdentity, b: ServerIdentity): boolean {
  return a.run === b.run && a.lineage === b.lineage
}

/** The reason why such a log is not continued: the other half of a log that is being moved would overwrite what it gets. */
function noFeed(prefix: string): string {
  return (
    `the log under ${prefix} has no feed. While its keys are moved to another server, that passes. ` +
    `If the feed was deleted, DEL ${prefix}log begins a new log, and all readers are notified`
  )
}
