import type { Stage } from './simulate.ts'

/** Publishes now and then, through whichever hub, some of it twice under one key. */
export interface Publisher {
  start(): void
  stop(): void
}

export function createPublisher(stage: Stage): Publisher {
  const { world, scenario } = stage
  const { chance } = world
  let count = 0
  let stopped = false

  function message() {
    const channel = chance.pick(scenario.channels)
    count += 1
    const type = chance.happens(0.2) ? 'rare' : 'message'
    return { channel, type, data: { name: `${channel}${count}`, filler: 'x'.repeat(chance.whole(0, 60)) } }
  }

  function publish(): void {
    const messages = chance.happens(0.2) ? [message(), message(), message()] : [message()]
    const isRepeated = chance.happens(0.1)
    const key = isRepeated ? { idempotencyKey: `k${count}` } : {}
    send(messages, key)
    if (isRepeated) {
      stage.count('publish sent twice')
      world.after(chance.between(0, 300), () => send(messages, key))
    }
  }

  function send(messages: ReturnType<typeof message>[], key: { idempotencyKey?: string }): void {
    const { hub, name } = chance.pick(stage.nodes)
    if (!hub) return
    stage.note('publish', name, messages.map(({ data }) => data.name).join())
    let answered = false
    hub.publishBatch(messages, key).then(
      (events) => {
        answered = true
        stage.note('acknowledged', events.map(({ id }) => id).join())
        for (const [at, { id }] of events.entries()) {
          if (stage.truth.place(id)?.name !== messages[at]?.data.name) {
            stage.judge.accuse('wrong-id', `${messages[at]?.data.name} was acknowledged as ${id}`)
          }
        }
      },
      (error: Error) => {
        answered = true
        stage.note('refused', error.message)
      },
    )
    world.after(10_000, () => {
      if (!answered) stage.count('publish without answer')
    })
  }

  function next(): void {
    // In bursts and pauses: several events in one turn, and quiet in which cursors age.
    const wait = chance.happens(0.3) ? chance.between(0, 3) : chance.between(0, 2.8 * scenario.publishEveryMs)
    world.after(chance.happens(0.01) ? 5_000 : wait, () => {
      if (stopped) return
      publish()
      next()
    })
  }

  return {
    start: next,
    stop() {
      stopped = true
    },
  }
}
