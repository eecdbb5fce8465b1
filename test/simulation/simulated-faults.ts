import type { Fault } from './scenario.ts'
import type { Stage } from './simulate.ts'
import type { SimulatedNode } from './simulated-node.ts'

/** Breaks things until told to stop, and then puts everything right. */
export interface Faults {
  start(): void
  heal(): void
}

export function createFaults(stage: Stage): Faults {
  const { world, scenario, log, nodes, readers, count } = stage
  const { chance } = world
  let healed = false

  const actions: Record<Fault, () => void> = {
    crash() {
      const node = chance.pick(nodes)
      if (!node.machine.alive) return
      count('crash of a hub')
      node.crash()
      comeBack(node, chance.between(50, 3_000))
    },
    pause() {
      const { machine, name } = chance.pick(nodes)
      if (!machine.alive || machine.paused) return
      count('pause of a hub')
      stage.note('pause', name)
      machine.pause()
      world.after(chance.between(100, 6_000), machine.resume)
    },
    'delay tail'() {
      const { view } = chance.pick(nodes)
      count('delayed tail')
      view.delayTail(chance.between(100, 12_000))
    },
    trim() {
      const channel = chance.pick(stage.channels)
      stage.note('trim', channel)
      log.trim(channel, chance.whole(0, 3))
    },
    'roll back'() {
      if (log.isSplit || !log.rollBack(chance.whole(1, 4))) return
      count('rollback')
      stage.note('rollback')
    },
    'fail over'() {
      if (log.isSplit || !log.failOver(chance.whole(1, 4), chance.pick(clockSteps), chance.happens(0.6))) return
      count('failover with another clock')
      stage.note('failover')
    },
    split() {
      if (log.isSplit) return
      count('two masters')
      stage.note('split')
      log.split(chance.whole(0, 3), chance.pick(clockSteps))
      for (const node of nodes) world.after(chance.between(0, splitMs), () => node.view.follow())
      world.after(splitMs, join)
    },
    wipe() {
      if (log.isSplit) return
      count('loss of the whole log')
      stage.note('wipe')
      for (const node of nodes) node.crash()
      log.wipe()
      for (const node of nodes) comeBack(node, chance.between(50, 1_000))
    },
    invalidate() {
      const { hub } = chance.pick(nodes)
      if (!hub) return
      count('invalidation')
      hub.invalidate(chance.pick(stage.channels)).catch((error: Error) => stage.note('rejected', error.message))
    },
    stall() {
      const connection = pickConnection()
      if (!connection) return
      count('slow sink')
      connection.stall(chance.between(200, 9_000))
    },
    'step clock'() {
      const ms = chance.pick([-3_600_000, -60_000, -50, 50, 60_000, 3_600_000])
      count(ms < 0 ? 'clock step back' : 'clock step forward')
      stage.note('step', ms)
      if (chance.happens(0.5)) log.stepClock(ms)
      else chance.pick(nodes).machine.stepClock(ms)
    },
    revoke() {
      const reader = pickReader()
      if (!reader || stage.revoked.has(reader.name)) return
      count('revocation')
      stage.note('revoke', reader.name)
      stage.revoked.add(reader.name)
      for (const node of nodes) world.after(chance.between(0, 200), () => node.revoke(reader.name))
      world.after(chance.between(1_000, 5_000), () => {
        stage.revoked.delete(reader.name)
        reader.close()
        reader.open()
      })
    },
    drain() {
      const node = chance.pick(nodes)
      if (!node.hub || !node.accepts) return
      count('drain')
      stage.note('drain', node.name)
      void node.drain().then(() => comeBack(node, chance.between(50, 2_000)))
    },
    cut() {
      const connection = pickConnection()
      if (!connection) return
      count('cut')
      connection.cut()
    },
    freeze() {
      const connection = pickConnection()
      if (!connection) return
      count('half-open connection')
      connection.freeze()
    },
  }

  function join(): void {
    for (const node of nodes) node.view.follow()
    log.leaveOld()
  }

  function comeBack(node: SimulatedNode, afterMs: number): void {
    const { machine } = node
    world.after(afterMs, () => {
      if (node.machine === machine && !machine.alive) node.start()
    })
  }

  function pickReader() {
    return readers.length > 0 ? chance.pick(readers) : undefined
  }

  function pickConnection() {
    const connection = pickReader()?.connection
    return connection?.open ? connection : undefined
  }

  function next(): void {
    world.after(chance.between(0, 2 * scenario.faultEveryMs), () => {
      if (healed) return
      actions[chance.pick(scenario.faults)]()
      next()
    })
  }

  return {
    start: next,
    heal() {
      healed = true
      join()
      for (const node of nodes) node.machine.resume()
    },
  }
}

// What the clock of another master may differ by, and for how long both have hubs.
const clockSteps = [-60_000, -3_000, -200, 0, 200, 3_000]
const splitMs = 3_000
