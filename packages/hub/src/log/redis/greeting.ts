import { createEpoch, type IdCodec, isAfter, type Position, RejoinError } from '@rejoin/protocol'
import type { Environment } from '../../environment.ts'
import { drawBranchStep } from '../branch-step.ts'
import { parseBranches } from './branches.ts'
import { checkServer, type ServerFacts, type ServerIdentity, unavailable } from './checks.ts'
import type { Connection } from './client.ts'
import { parsePlace, placeText } from './entry.ts'
import { formatVersion, keysOf, probe, type Script, type ScriptSettings, scriptFor } from './script/script.ts'
import type { KnownState, Loss } from './state.ts'

/** A connection whose server is known, with the script that only this server process knows. */
export interface Greeted {
  readonly connection: Connection
  readonly script: Script
  /** Its `run_id`. */
  readonly process: string
}

export interface GreetingOptions {
  readonly settings: ScriptSettings
  /** How ids are written, to be compared with what the log was made for. */
  readonly ids: string
  readonly codec: IdCodec
  readonly state: KnownState
  readonly environment: Environment
  /** The time to date events with, '' for that of Redis. */
  now(): string
  /** Called at every greeting; `isNew` when this hub meets that server for the first time. */
  onServer(facts: ServerFacts, isNew: boolean): void
}

/**
 * Looks at the log over a new connection, or again over one that has shown that something is different, and opens a branch
 * when it cannot be proved that the log still holds all it acknowledged.
 *
 * The proof is that the same process answers which answered before, and that it has not copied its data from elsewhere since:
 * what Redis keeps in memory is lost in no other way. A process that was started again, or a replica that took over, has
 * another `run_id`; one that was made a replica for a while, and a master again, another `master_replid`.
 */
export function createGreeting(options: GreetingOptions): Greet {
  const { settings, ids, state, environment, now, onServer } = options
  const keys = keysOf(settings.prefix)
  const scripts = new Map<string, Script>()

  async function greet(connection: Connection, accept: (process: string) => void): Promise<Greeted> {
    const server = checkServer.identity(checkServer.version(await ask(connection, probe, [])))
    accept(server.run)
    const name = `${server.run} ${server.lineage}`
    const isNew = !scripts.has(name)
    const script = scripts.get(name) ?? scriptFor(settings, server, createEpoch(Math.random))
    scripts.set(name, script)
    const step = (...args: string[]) => ask(connection, script.source, args) as Promise<string[]>

    for (let round = 0; round < rounds; round += 1) {
      // As of now: by the time of the answer, this hub may have seen more over another connection.
      const { seen } = state
      const hello = readHello(await step('hello'))
      if (!isSameServer(hello, server)) {
        // The text has reached another process than the one it names. It must not be used any more.
        scripts.delete(name)
        throw unavailable('another server answers than a moment ago')
      }
      if (hello.role !== 'master') throw unavailable(`it is a ${hello.role}, which takes no events`)
      checkServer.policy(hello.policy)
      if (round === 0) onServer(hello, isNew)
      let lines = await bringUp(step, hello, seen)
      // Somebody removed the branches. What this log held before cannot be told apart any more; from here on it can.
      if (lines.length === 0) lines = await openBranch(step, hello.epoch, hello.top)
      if (lines[0] === '!empty') continue
      lines = await reportLoss(step, lines)
      if (lines[0] === '!empty') continue
      state.adopt(parseBranches(lines))
      return { connection, script, process: server.run }
    }
    throw unavailable('its log is removed again and again')
  }

  function bringUp(step: Step, hello: Hello, seen: Position | undefined): Promise<string[]> {
    if (hello.logRun === '') {
      const number = (state.history.at(-1)?.number ?? -1) + newStep()
      return step('create', now(), newEpoch(), ids, state.seen ? placeText(state.seen) : '', String(number))
    }
    checkFormat(hello)
    if (hello.top === '') throw unavailable(noFeed(settings.prefix))
    const last = parsePlace(hello.last)
    const isStored = isSameServer(hello, { run: hello.logRun, lineage: hello.logLineage })
    const isProved = isStored && hello.top === hello.last && !(seen && isAfter(seen, last))
    if (isProved) return step('history')
    const isBehind = hello.epoch === state.epoch && state.seen !== undefined && isAfter(state.seen, last)
    // In the same step in which the branch opens: nobody can be led over it before.
    const loss = isBehind ? { fork: last, through: state.seen } : undefined
    return openBranch(step, hello.epoch, hello.top, loss as Loss | undefined)
  }

  /**
   * What this hub has seen beyond the fork of a branch that another hub opened: that hub may not have seen it, so the channels
   * concerned are put on record by one more branch. Nobody whose channels lost nothing is told of it.
   */
  async function reportLoss(step: Step, found: readonly string[]): Promise<string[]> {
    let lines = [...found]
    for (let round = 0; round < rounds && lines[0] !== '!empty'; round += 1) {
      const stored = parseBranches(lines)
      const loss = state.lossIn(stored)
      const reported = loss?.branch?.reported
      if (!loss || (reported && loss.through && !isAfter(loss.through, reported))) break
      lines = await openBranch(step, stored.at(-1)?.epoch ?? '', '', loss)
      // A branch this log knows nothing of, of which it cannot keep how far the record goes: once is enough.
      if (!loss.through && parseBranches(lines).length > stored.length) break
    }
    return lines
  }

  function openBranch(step: Step, epoch: string, top = '', loss?: Loss): Promise<string[]> {
    const places = [top, state.seen ? placeText(state.seen) : ''].filter((place) => place !== '')
    const floor = places.reduce((a, b) => (isAfter(parsePlace(a), parsePlace(b)) ? a : b), '0-0')
    return step('branch', now(), epoch, newEpoch(), String(newStep()), floor, ...(loss ? lossArguments(loss) : []))
  }

  function lossArguments({ branch, fork, through }: Loss): string[] {
    const lost = state.channels.past(fork)
    const channels = lost ? [...lost.keys()] : ['*']
    return [through ? placeText(through) : '', branch?.epoch ?? '', ...channels]
  }

  function newEpoch(): string {
    return createEpoch(environment.random)
  }

  function newStep(): number {
    return drawBranchStep(environment.random)
  }

  function checkFormat({ version, ids: stored }: Hello): void {
    if (version !== String(formatVersion)) {
      refuse(
        `The log under ${settings.prefix} has format ${version}, and this Rejoin writes format ${formatVersion}. ` +
          'Use the version that made it, or choose another prefix.',
      )
    }
    if (stored !== ids) {
      refuse(
        `The log under ${settings.prefix} writes ids as ${stored}, and was opened for ${ids}. ` +
          'One event has one id for ever: open it with the codec it was made with, or choose another prefix.',
      )
    }
  }

  // EVAL and not SCRIPT LOAD: with a key, a Cluster sends it where the log is.
  function ask(connection: Connection, source: string, args: readonly string[]): Promise<unknown> {
    return connection.send(['EVAL', source, String(keys.length), ...keys, ...args])
  }

  return greet
}

/**
 * @param accept - told which process answers before anything is written; throws when it is not to be used
 */
export type Greet = (connection: Connection, accept: (process: string) => void) => Promise<Greeted>

type Step = (...args: string[]) => Promise<string[]>

// Each further one means that somebody emptied Redis between two commands.
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
  /** The newest id the feed has given out; '' when there is no feed. */
  readonly top: string
}

function readHello(reply: readonly string[]): Hello {
  const [
    run = '',
    lineage = '',
    policy = '',
    aof = '',
    role = '',
    replicas = '',
    waitAof = '',
    logRun = '',
    logLineage = '',
    last = '',
    epoch = '',
    version = '',
    ids = '',
    top = '',
  ] = reply
  const facts = { aof: aof === '1', waitAof: waitAof === '1', replicas: Number(replicas) }
  return { run, lineage, policy, ...facts, role, logRun, logLineage, last, epoch, version, ids, top }
}

function isSameServer(a: ServerIdentity, b: ServerIdentity): boolean {
  return a.run === b.run && a.lineage === b.lineage
}

/** A branch opened beside half of a log would be overwritten by the other half. */
function noFeed(prefix: string): string {
  return (
    `the log under ${prefix} has no feed. While its keys are moved to another server, that passes. ` +
    `If the feed was deleted, DEL ${prefix}log begins a new log, and all readers are told`
  )
}

function refuse(message: string): never {
  throw new RejoinError(message, { code: 'invalid-option' })
}
