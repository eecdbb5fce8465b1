import type { Stage } from './simulate.ts'
import type { Faults } from './simulated-faults.ts'
import { createChance } from './virtual-world.ts'

/**
 * What an operator does to the folder of a log, in one history of six: copies it, goes on, and puts the copy back while no hub
 * runs. At times the log then does not open for a while.
 *
 * Has a chance of its own, so that all other histories are what they would be without it.
 */
export function createCopies(stage: Stage, seed: number): Faults {
  const { world, log, nodes, count } = stage
  const chance = createChance(-seed - 2)
  const isDone = chance.happens(1 / 6)
  let healed = false

  function next(): void {
    world.after(chance.between(200, 2_500), () => {
      if (healed) return
      log.copy()
      stage.note('copy')
      world.after(chance.between(100, 2_500), putBack)
    })
  }

  function putBack(): void {
    if (healed) return
    if (log.canPutBack()) {
      count('older copy put back')
      stage.note('put back')
      for (const node of nodes) node.crash()
      log.putBack()
      if (chance.happens(0.4)) log.rejectFor(chance.between(100, 1_500))
      for (const node of nodes) {
        const { machine } = node
        world.after(chance.between(50, 1_000), () => {
          if (node.machine === machine && !machine.alive) node.start()
        })
      }
    }
    next()
  }

  return {
    start() {
      if (isDone) next()
    },
    heal() {
      healed = true
    },
  }
}
