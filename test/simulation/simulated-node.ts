import type { Hub, Rights, SubscribeRequest } from '@rejoin/hub'
import { comparePositions, type GapReason } from '@rejoin/protocol'
import type { WireFrame } from './frames.ts'
import type { Stage } from './simulate.ts'
import { createLine, type Line } from './simulated-line.ts'
import type { NodeView, SimulatedLog } from './simulated-log.ts'
import { createMachine, type Machine } from './simulated-machine.ts'
import type { SimulatedReader } from './simulated-reader.ts'

/** A hub on a machine of its own, which comes up, dies and comes up again. */
export interface SimulatedNode {
  readonly name: string
  readonly hub: Hub | undefined
  readonly machine: Machine
  readonly view: NodeView
  readonly accepts: boolean
  readonly lines: ReadonlySet<Line>
  start(): void
  crash(): void
  drain(): Promise<void>
  revoke(subject: string): void
  /** A reader's request arrives. */
  accept(reader: Pick<SimulatedReader, 'name' | 'wanted'>, request: Pick<SubscribeRequest, 'start'>): Line
}

export function createNode(name: string, stage: Stage): SimulatedNode {
  const { world, scenario, judge, truth } = stage
  const { chance } = world
  const lines = new Set<Line>()
  const revoked = new Set<string>()
  let machine: Machine
  let view: ReturnType<SimulatedLog['sourceFor']>
  let hub: Hub | undefined
  let accepts = false

  function start(): void {
    machine = createMachine(world, chance.between(-2_000, 2_000))
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
        ...(scenario.snapshots ? { snapshot } : {}),
      })
      .then((opened) => {
        if (born !== machine || !born.alive) return
        hub = opened
        accepts = true
        hub.on('stall', () => stage.count('stalled reader given up'))
        stage.note('up', name)
      })
  }

  /** State is written before it is published, so that a reading of it holds all that stands in the log by then. */
  function snapshot(): Promise<unknown> {
    const asked = machine
    return new Promise((resolve) => {
      world.after(chance.between(0, scenario.snapshotMs), () => {
        const upTo = truth.places.at(-1)?.id
        world.after(chance.between(0, scenario.snapshotMs), () => asked.run(() => resolve({ upTo })))
      })
    })
  }

  function crash(): void {
    if (!machine.alive) return
    machine.kill()
    accepts = false
    hub = undefined
    for (const line of lines) {
      // A process that dies closes its connections; a computer that dies does not.
      if (chance.happens(0.8)) line.cut()
      else line.freeze()
    }
    lines.clear()
    stage.note('down', name)
  }

  return {
    name,
    lines,
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
    accept(reader, { start: from }) {
      const here = machine
      const serving = hub as Hub
      const requested = from.from === 'cursor' ? from.cursor : null
      revoked.delete(reader.name)
      const facts = followJoin(stage, view, from)
      const watch = judge.watch({
        who: `${reader.name} at ${name}`,
        wanted: reader.wanted,
        requested,
        isRevoked: () => revoked.has(reader.name),
        onFrame: facts.onFrame,
      })
      const line: Line = createLine({
        world,
        budgetBytes: scenario.budgetBytes,
        latencyMs: scenario.lineLatencyMs,
        onWrite(bytes) {
          stage.noteBytes(bytes)
          watch(bytes)
        },
        onDrain: () =>
          here.run(() => {
            facts.onDrain()
            session.drained()
          }),
        onGone: () =>
          here.run(() => {
            lines.delete(line)
            session.disconnected()
          }),
        onTorn: () => stage.count('cut mid-frame'),
      })
      lines.add(line)
      const rights: Rights = {
        grant: { subject: reader.name, subscribe: ['*'] },
        renew: () => stage.renew(here, reader.name),
      }
      const subscription = stage.parts.createSubscription(reader.wanted.channels, reader.wanted.types)
      const session = serving.subscribe({ subscription, start: from, rights }, line.sink)
      return line
    },
  }
}

/** Tells by which way a reader came to where it is. */
function followJoin(stage: Stage, view: NodeView, from: SubscribeRequest['start']) {
  const readsBefore = view.reads
  const cursor = from.from === 'cursor' ? stage.truth.place(from.cursor) : undefined
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
        const branches = stage.truth.places.filter((place) => place.kind === 'branch' && place.log === cursor?.log)
        if (branches.some(({ position }) => cursor && comparePositions(position, cursor.position) > 0)) {
          stage.count('resumed on a later branch')
        }
      } else if (type === 'sync-required') {
        const { reason, snapshot } = JSON.parse(data) as { reason: GapReason; snapshot?: unknown }
        if (reason !== 'added') stage.count(`gap: ${reason}`)
        if (snapshot !== undefined) stage.count('gap with a snapshot')
        if (streaming) stage.count('gap in mid-stream')
        streaming = true
      } else if (type === 'checkpoint') stage.count('checkpoint')
      else if (slow && type !== 'close') {
        slow = false
        stage.count('back from slow')
      }
    },
  }
}
