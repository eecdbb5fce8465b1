import type { Hub } from '@rejoin/hub'
import type { PollAnswer, ReaderRejection, Start, SubscribeRequest } from '@rejoin/hub/internal'
import { type Close, comparePositions, type SyncRequired } from '@rejoin/protocol'
import type { WireFrame } from './frames.ts'
import { nameOf } from './judge.ts'
import type { Stage } from './simulate.ts'
import { type Breakable, type Connection, createConnection } from './simulated-connection.ts'
import type { NodeView, SimulatedLog } from './simulated-log.ts'
import { createMachine, type Machine } from './simulated-machine.ts'
import type { SimulatedReader } from './simulated-reader.ts'
import { compareEntries, type Entry } from './truth.ts'

/** A hub on a machine of its own, which comes up, dies and comes up again. */
export interface SimulatedNode {
  readonly name: string
  readonly hub: Hub | undefined
  readonly machine: Machine
  readonly view: NodeView
  readonly accepts: boolean
  start(): void
  crash(): void
  drain(): Promise<void>
  revoke(subject: string): void
  /** A reader's request arrives. Undefined when there is nothing for it to come back for. */
  accept(reader: Pick<SimulatedReader, 'name' | 'wanted'>, start: Start): Promise<Visit | undefined>
}

/** A reader that was let in. */
export interface Visit {
  /** Opens a stream. */
  stream(): Connection
  /** Waits for an answer. What is given breaks with this node. */
  poll(connection: Breakable, waitMs: number, signal: AbortSignal): Promise<PollAnswer | ReaderRejection>
}

export function createNode(name: string, stage: Stage): SimulatedNode {
  const { world, scenario, judge, truth } = stage
  const { chance } = world
  const connections = new Set<Breakable>()
  const revoked = new Set<string>()
  let machine: Machine
  let view: ReturnType<SimulatedLog['sourceFor']>
  let hub: Hub | undefined
  let accepts = false

  function start(): void {
    machine = createMachine(world, chance.between(-2_000, 2_000), () =>
      judge.accuse('endless-work', `${name} works on without end`),
    )
    view = stage.log.sourceFor(machine)
    hub = undefined
    revoked.clear()
    const born = machine
    void stage.parts
      .createHub({
        log: view,
        environment: machine.environment,
        heartbeatMs: scenario.heartbeatMs,
        stallTimeoutMs: scenario.stallTimeoutMs,
        hotBytes: scenario.hotBytes,
        retryMs: 500,
        maxReplayEvents: scenario.maxReplayEvents,
        retain: scenario.retain,
        ...(scenario.snapshots ? { snapshot } : {}),
      })
      .then((opened) => {
        if (born !== machine || !born.alive) return
        hub = opened
        accepts = true
        hub.on('stall', () => stage.count('stalled reader given up'))
        stage.note('up', name)
      }, startAgain)

    /** As whatever starts hubs does with one that ended. */
    function startAgain(): void {
      if (born !== machine || !born.alive) return
      crash()
      world.after(300, () => {
        if (born === machine) start()
      })
    }
  }

  /** State is written before it is published, so that a reading of it holds all that stands in the log by then. */
  function snapshot(): Promise<unknown> {
    const asked = machine
    return new Promise((resolve) => {
      world.after(chance.between(0, scenario.snapshotMs), () => {
        const upTo = truth.newestOn(view.line).id
        world.after(chance.between(0, scenario.snapshotMs), () => asked.run(() => resolve({ upTo })))
      })
    })
  }

  function crash(): void {
    if (!machine.alive) return
    machine.kill()
    accepts = false
    hub = undefined
    for (const connection of connections) {
      // A process that dies closes its connections; a computer that dies does not.
      if (chance.happens(0.8)) connection.cut()
      else connection.freeze()
    }
    connections.clear()
    stage.note('down', name)
  }

  return {
    name,
    get hub() {
      return machine.paused ? undefined : hub
    },
    get machine() {
      return machine
    },
    get view() {
      return view
    },
    get accepts() {
      return accepts
    },
    start,
    crash,
    async drain() {
      const draining = hub
      if (!draining || !accepts) return
      accepts = chance.happens(0.3)
      await draining.drain({ withinMs: 1_000 })
      accepts = false
      await draining.close()
      crash()
    },
    revoke(subject) {
      machine.run(() => {
        revoked.add(subject)
        hub?.revoke(subject)
      })
    },
    async accept(reader, from) {
      const [here, serving, seen] = [machine, hub as Hub, hasSeen()]
      const { names, types, showsChannel } = reader.wanted
      revoked.delete(reader.name)
      // An answer that a revocation has cut short holds what came before it.
      let wasCutShort = false
      const facts = followJoin(stage, view, from)
      const watch = judge.watch({
        who: `${reader.name} at ${name}`,
        wanted: reader.wanted,
        requested: from.from === 'cursor' ? from.cursor : null,
        asksForAll: from.from === 'earliest',
        linesSince: (time) => view.linesSince(time),
        heardAt: view.heardAt,
        tailLine: () => view.line,
        isRevoked: () => revoked.has(reader.name) && !wasCutShort,
        hadSeen: seen,
        onFrame: facts.onFrame,
      })
      const request: SubscribeRequest = {
        subscription: stage.parts.createSubscription(names, types, showsChannel ? 'channel' : undefined),
        start: from,
        rights: {
          grant: { subject: reader.name, subscribe: ['*'] },
          renew: () => stage.renew(here, reader.name),
          asOf: serving.port.revocations,
        },
      }
      const admitted = await serving.port.admit(request, { readsStatus: false })
      if (admitted.kind !== 'admitted') {
        stage.count('finished, by status')
        watch.nothingMore()
        return undefined
      }

      return {
        stream() {
          const connection: Connection = createConnection({
            world,
            budgetBytes: scenario.budgetBytes,
            latencyMs: scenario.connectionLatencyMs,
            onWrite(bytes) {
              stage.noteBytes(bytes)
              watch.bytes(bytes)
            },
            onDrain: () =>
              here.run(() => {
                facts.onDrain()
                session.drained()
              }),
            onGone: () =>
              here.run(() => {
                connections.delete(connection)
                session.disconnected()
              }),
            onTorn: () => stage.count('cut mid-frame'),
          })
          connections.add(connection)
          const session = serving.port.subscribe(admitted, connection.sink)
          return connection
        },
        async poll(connection, waitMs, signal) {
          connections.add(connection)
          const head = truth.newestOn(view.line)
          const answer = await serving.port.poll(request, { waitMs, signal })
          connections.delete(connection)
          if (!('events' in answer) || signal.aborted) return answer
          wasCutShort = answer.events.at(-1)?.type === 'close'
          stage.noteBytes(Buffer.from(JSON.stringify(answer)))
          watch.frames(answer.events.map((frame) => ({ channel: undefined, ...frame, id: frame.id ?? undefined })))
          judgeNothing(reader.name, answer, head)
          return answer
        },
      }
    },
  }

  /** Tells of an entry whether this hub's tail has handed it over, or one behind it, by now. */
  function hasSeen(): (entry: Entry) => boolean {
    const { applied, line } = view
    const log = truth.entries.at(-1)?.log as number
    const isBehind = (entry: Entry) => truth.isOn(entry, line) && comparePositions(entry.position, applied) <= 0
    return (entry) => entry.log < log || isBehind(entry)
  }

  function judgeNothing(who: string, { events, cursor }: PollAnswer, head: Entry): void {
    if (events.some(({ type }) => type !== 'hello' && type !== 'checkpoint')) return
    stage.count('poll without news')
    const reached = truth.entry(cursor ?? '')
    if (head.lostAt < Infinity || head.log !== truth.entries.at(-1)?.log || !truth.isOn(head, view.line)) return
    if (!reached || compareEntries(reached, head) < 0) {
      judge.accuse('early-nothing', `${who} at ${name} was told of nothing up to ${reached && nameOf(reached)}`)
    }
  }
}

/** Tells by which way a reader came to where it is. */
function followJoin(stage: Stage, view: NodeView, from: Start) {
  const readsBefore = view.reads
  const cursor = from.from === 'cursor' ? stage.truth.entry(from.cursor) : undefined
  const isAhead = cursor !== undefined && comparePositions(cursor.position, view.applied) > 0
  let streaming = false
  let slow = false

  return {
    onDrain() {
      slow = true
    },
    onFrame({ type, data, id }: WireFrame) {
      if (data === undefined) return
      if (type === 'hello') {
        streaming = id !== undefined
        if (from.from === 'now') stage.count('fresh, from now')
        if (from.from === 'earliest') stage.count('fresh, from the earliest')
        if (from.from === 'last') stage.count('fresh, with the last few')
        if (from.from !== 'cursor' || id === undefined) return
        stage.count(view.reads > readsBefore ? 'resumed from log blocks' : 'resumed from memory')
        if (isAhead) stage.count('waited for the tail')
        const branches = stage.truth.entries.filter((entry) => entry.kind === 'branch' && entry.log === cursor?.log)
        if (branches.some(({ position }) => cursor && comparePositions(position, cursor.position) > 0)) {
          stage.count('resumed on a later branch')
        }
      } else if (type === 'sync-required') {
        const { reason, snapshot, retained } = JSON.parse(data) as SyncRequired
        if (reason !== 'added') stage.count(`gap: ${reason}`)
        if (snapshot !== undefined) stage.count('gap with a snapshot')
        if (retained !== undefined) stage.count('gap with retained values')
        if (streaming) stage.count('gap in mid-stream')
        streaming = true
      } else if (type === 'checkpoint') stage.count('checkpoint')
      else if (type === 'close') {
        if ((JSON.parse(data) as Close).reason === 'finished') stage.count('finished, in band')
      } else {
        if (stage.truth.entry(id ?? '')?.kind === 'live') stage.count('live event delivered')
        if (slow) stage.count('back from slow')
        slow = false
      }
    },
  }
}
