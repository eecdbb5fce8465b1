import { createHash } from 'node:crypto'
import { connect } from '@rejoin/client'
import { createHub, type Grant } from '@rejoin/hub'
import { createSubscription } from '@rejoin/hub/internal'
import { createJudge, type Judge, nameOf, type Violation } from './judge.ts'
import { drawScenario, type Scenario } from './scenario.ts'
import { createCopies } from './simulated-copies.ts'
import { createFaults } from './simulated-faults.ts'
import { createSimulatedLog, type LogFlaw, type SimulatedLog } from './simulated-log.ts'
import type { Machine } from './simulated-machine.ts'
import { createNode, type SimulatedNode } from './simulated-node.ts'
import { createPollConnection } from './simulated-poll-connection.ts'
import { createPublisher } from './simulated-publisher.ts'
import { createReader, type SimulatedReader } from './simulated-reader.ts'
import { createTally, type Happening, type Tally } from './tally.ts'
import { createTruth, type Entry, type Truth } from './truth.ts'
import { createWorld, type World } from './virtual-world.ts'

/** What is under test. Mutants bring their own. */
export interface Parts {
  readonly createHub: typeof createHub
  readonly createSubscription: typeof createSubscription
  readonly connect: typeof connect
}

export interface SimulateOptions {
  readonly parts?: Parts
  readonly flaw?: LogFlaw | undefined
  /** Keeps what happened, line by line. */
  readonly story?: boolean
  /** Ends with the first violation, instead of playing the history to its end. */
  readonly untilBroken?: boolean
}

/** All that those who take part can see of each other. */
export interface Stage {
  readonly world: World
  readonly scenario: Scenario
  readonly parts: Parts
  readonly truth: Truth
  readonly judge: Judge
  readonly log: SimulatedLog
  readonly nodes: readonly SimulatedNode[]
  readonly readers: readonly SimulatedReader[]
  /** Channels that somebody has published to, or may. */
  readonly channels: string[]
  /** No more faults, and nothing new. */
  readonly isQuiet: boolean
  /** Subjects without rights. */
  readonly revoked: Set<string>
  /** Asks for a subject's rights again, from the machine of a hub. */
  renew(machine: Machine, subject: string): Promise<Grant | null>
  count(kind: Happening): void
  /** Writes down what happened. */
  note(...words: unknown[]): void
  /** Writes down what a hub has sent, byte by byte. */
  noteBytes(bytes: Uint8Array): void
}

export interface Outcome {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly tally: Tally
  readonly steps: number
  readonly virtualMs: number
  readonly events: number
  /** Of everything that happened, in order: two runs of a seed have the same. */
  readonly hash: string
  readonly story: readonly string[]
}

/** From the end of the faults until every reader has everything: the longest silence, and a few waits after it. */
const catchUpMs = 90_000

/** Plays the one history of a seed and judges it. */
export async function simulate(seed: number, options: SimulateOptions = {}): Promise<Outcome> {
  const world = createWorld(seed)
  const { chance } = world
  const scenario = drawScenario(chance, seed)
  const truth = createTruth()
  const tally = createTally()
  const hash = createHash('sha256')
  const story: string[] = []
  const nodes: SimulatedNode[] = []
  const readers: SimulatedReader[] = []

  const count = (kind: Happening) => void tally.set(kind, (tally.get(kind) as number) + 1)
  const judge = createJudge({
    ...{ world, truth, retain: scenario.retain },
    onStateChecked: () => count('state compared, value by value'),
  })
  const parts = options.parts ?? honest
  await loadLongPoll(parts)
  let isQuiet = false
  const stage: Stage = {
    ...{ world, scenario, truth, judge, nodes, readers, count, parts },
    channels: [...scenario.channels],
    get isQuiet() {
      return isQuiet
    },
    revoked: new Set(),
    log: createSimulatedLog({
      ...{ world, truth, flaw: options.flaw },
      codec: scenario.codec,
      window: scenario.window,
      feedEvents: scenario.feedEvents,
      pageEvents: scenario.pageEvents,
      latencyMs: scenario.logLatencyMs,
      onTrimDuringRead: () => count('trim during a read'),
      onLossReported: () => count('loss put on record'),
      onEndLost: () => count('end lost by a rollback'),
      onRejection: () => count('log rejected at opening'),
      onJump(why) {
        count('sent back by a jump of the tail')
        if (why === 'feed') count('tail out of its feed')
      },
    }),
    renew: (machine, subject) =>
      new Promise((resolve) => {
        world.after(chance.between(0, 50), () => {
          const grant = stage.revoked.has(subject) ? null : { subject, subscribe: ['*'] }
          machine.run(() => resolve(grant))
        })
      }),
    count,
    note(...words) {
      const line = `${world.now.toFixed(3)} ${words.join(' ')}`
      hash.update(line)
      if (options.story) story.push(line)
    },
    noteBytes: (bytes) => void hash.update(bytes),
  }

  for (let each = 0; each < scenario.nodes; each += 1) {
    const node = createNode(`n${each}`, stage)
    nodes.push(node)
    node.start()
  }
  await world.advance(1_000)
  const publisher = createPublisher(stage)
  const faults = createFaults(stage)
  const copies = createCopies(stage, seed)
  for (let each = 0; each < scenario.readers; each += 1) {
    world.after(chance.happens(0.5) ? 0 : chance.between(0, scenario.activeMs / 2), () => {
      const reader = createReader(stage, drawReader(stage, `r${each}`))
      readers.push(reader)
      reader.open()
    })
  }
  publisher.start()
  faults.start()
  copies.start()
  const isOver = () => options.untilBroken === true && judge.violations.length > 0
  for (const end = world.now + scenario.activeMs; world.now < end && !isOver(); ) await world.advance(500)
  isQuiet = true
  publisher.stop()
  faults.heal()
  copies.heal()

  // A hub that is behind may still tell its readers of an entry that is lost, and who was revoked is yet to come back.
  const isCalm = () =>
    nodes.every((node) => node.accepts && !node.view.behind) &&
    !stage.log.isSplit &&
    stage.revoked.size === 0 &&
    readers.every((reader) => reader.caughtUp)
  const deadline = world.now + catchUpMs
  await world.advance(1_000)
  do {
    while (world.now < deadline && !isOver() && !isCalm()) await world.advance(500)
    // Whatever comes now comes twice; or it was on its way since before, and its reader has to catch up once more.
    await world.advance(1_000)
  } while (world.now < deadline && !isOver() && !isCalm())
  if (!isOver()) {
    for (const reader of readers) reader.judge()
    judgePublishes(stage)
  }
  for (const reader of readers) reader.close()
  if (!isOver()) await judgeSurvivors(stage)

  stage.note('end', world.steps)
  return {
    ...{ seed, tally, story, violations: judge.violations },
    steps: world.steps,
    virtualMs: world.now,
    events: truth.entries.length,
    hash: hash.digest('hex'),
  }
}

const honest: Parts = { createHub, createSubscription, connect }
const loaded = new WeakSet<Parts>()

/** The client loads it when it is needed first. That takes real time, of which a history knows nothing. */
async function loadLongPoll(parts: Parts): Promise<void> {
  if (loaded.has(parts)) return
  loaded.add(parts)
  await new Promise<void>((resolve) => {
    const stream = parts.connect('http://simulated/events', {
      transports: ['long-poll'],
      fetch() {
        queueMicrotask(() => stream.close())
        resolve()
        return Promise.reject(new Error('rejected'))
      },
    })
  })
}

const patterns = [['*'], ['c/*'], ['a', 'c/*'], ['c/*', 'c/d', 'c/f/*'], ['*', 'a']]

function drawReader({ world: { chance }, scenario, log }: Stage, name: string) {
  const from = chance.happens(0.15)
    ? chance.pick([log.idAhead(), 'nonsense', 'evt-7', 'v9_01ARZ3NDEKTSV4RRFFQ69G5FAV'])
    : chance.pick(['now', 'now', 'earliest', 'last'] as const)
  return {
    ...{ name, from },
    wanted: {
      names: chance.happens(0.35) ? chance.pick(patterns) : chance.some(scenario.channels),
      types: chance.happens(0.2) ? ['rare'] : [],
      showsChannel: chance.happens(0.2),
    },
    isStripped: chance.happens(0.05),
    polls: chance.happens(0.2),
    reloadMs: chance.happens(0.3) ? chance.between(1, 400) : 0,
  }
}

/** A reader that asks for all of a channel gets every event that the log has, whatever was lost between them. */
async function judgeSurvivors(stage: Stage): Promise<void> {
  const { world, nodes, truth, judge } = stage
  const node = nodes.find(({ accepts, hub }) => accepts && hub)
  if (!node) return
  for (const channel of new Set(stage.channels)) {
    const given = new Set<string>()
    let isCutShort = false
    const read = async (leave: AbortSignal): Promise<void> => {
      const wanted = { names: [channel], types: [], showsChannel: false }
      const visit = await node.accept({ name: `reader of all of ${channel}`, wanted }, { from: 'earliest' })
      const answer = await visit?.poll(
        createPollConnection(world, 1, leave, () => {}),
        0,
        leave,
      )
      if (!answer || !('events' in answer)) throw new Error('rejected')
      // What grew too old during the read is another matter.
      isCutShort = answer.events.some(({ type, data }) => type === 'sync-required' && !/"(epoch|earliest)"/.test(data))
      for (const { id } of answer.events) if (id !== null) given.add(id)
    }
    const leave = new AbortController()
    let isDone = false
    let failed = false
    node.machine.run(() => {
      const settle = (how: boolean) => () => {
        isDone = true
        failed = how
      }
      read(leave.signal).then(settle(false), settle(true))
    })
    for (const deadline = world.now + 20_000; !isDone && world.now < deadline; ) await world.advance(100)
    leave.abort()
    // A server that lost an entry and goes by it all the same starts such a reader where nothing stands.
    const isRemembered = (entry: Entry) =>
      entry.event?.channel === channel && !truth.isOn(entry, truth.mainLine) && truth.isKnownOn(entry, truth.mainLine)
    if (failed || isCutShort || truth.entries.some(isRemembered)) continue
    const isHeld = (entry: Entry) =>
      entry.kind === 'event' &&
      entry.event?.channel === channel &&
      entry.log === truth.entries.at(-1)?.log &&
      entry.lostAt === Infinity &&
      entry.trimmedAt === Infinity &&
      truth.isOn(entry, truth.mainLine)
    const missing = truth.entries.filter((entry) => isHeld(entry) && !given.has(entry.id))
    if (missing.length > 0)
      judge.accuse('deleted-survivor', `a reader of all of ${channel} did not get ${missing.map(nameOf).join()}`)
  }
}

/** A key that was used again, on whichever hub, must not have made a second event. */
function judgePublishes({ truth, judge }: Stage): void {
  for (const entry of truth.behindEnds) judge.accuse('behind-the-end', `${nameOf(entry)} stands behind an end`)
  const seen = new Set<string>()
  for (const entry of truth.entries) {
    if (entry.name === undefined || entry.lostAt < Infinity) continue
    const once = `${entry.log} ${entry.name}`
    if (seen.has(once)) judge.accuse('published-twice', `${nameOf(entry)} stands in the log twice`)
    seen.add(once)
  }
}
