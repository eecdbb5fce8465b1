import type { Stage } from './simulate.ts'
import { isAmong } from './truth.ts'

/**
 * Publishes now and then, through whichever hub, some of it twice under one key: events that are kept, values under a key,
 * events for those who are here. Opens channels and ends them, and tries to publish to some that have ended.
 */
export interface Publisher {
  start(): void
  stop(): void
}

export function createPublisher(stage: Stage): Publisher {
  const { world, scenario } = stage
  const { chance } = world
  const ended = new Set<string>()
  let count = 0
  let stopped = false

  function message() {
    const channel = pickChannel()
    count += 1
    const type = chance.happens(0.2) ? 'rare' : 'message'
    const data = { name: `${channel}${count}`, filler: 'x'.repeat(chance.whole(0, 60)) }
    return { channel, type, data, ...mannerOf(channel) }
  }

  function pickChannel(): string {
    if (ended.size > 0 && chance.happens(0.15)) return chance.pick([...ended])
    const open = stage.channels.filter((channel) => !ended.has(channel))
    if (open.length > 0 && !chance.happens(scenario.opens)) return chance.pick(open)
    const channel = chance.happens(0.8) ? `c/ne${count}w` : `ne${count}w`
    stage.channels.push(channel)
    stage.count('new channel')
    return channel
  }

  function mannerOf(channel: string): { live?: true; key?: string; forget?: boolean } {
    if (chance.happens(scenario.live)) {
      stage.count('live event')
      return { live: true }
    }
    if (!isAmong(scenario.retain, channel) || chance.happens(0.1)) return {}
    const forget = chance.happens(0.2)
    if (forget) stage.count('retained value forgotten')
    return { key: `k${chance.whole(0, 3)}`, forget }
  }

  function end(): void {
    const { hub, name } = chance.pick(stage.nodes)
    if (!hub) return
    const channel = chance.pick(chance.happens(0.7) ? scenario.channels : stage.channels)
    stage.count('end of a channel')
    stage.note('end', name, channel)
    ended.add(channel)
    hub.end(channel).then(
      ({ id }) => {
        const entry = stage.truth.entry(id)
        stage.note('ended', channel, id)
        if (entry?.kind !== 'end' || entry.event?.channel !== channel)
          stage.judge.accuse('wrong-id', `the end of ${channel} was acknowledged as ${id}`)
      },
      (error: Error) => stage.note('not ended', channel, error.message),
    )
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
          if (stage.truth.entry(id)?.name !== messages[at]?.data.name) {
            stage.judge.accuse('wrong-id', `${messages[at]?.data.name} was acknowledged as ${id}`)
          }
        }
      },
      (error: Error & { code?: string }) => {
        answered = true
        stage.note('rejected', error.message)
        if (error.code !== 'channel-ended') return
        stage.count('rejected, because it has ended')
        if (!messages.some(({ channel }) => stage.truth.endsOf(channel).length > 0))
          stage.judge.accuse('behind-the-end', `${messages[0]?.data.name} was rejected`)
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
      if (chance.happens(scenario.ends)) end()
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
