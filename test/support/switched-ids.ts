import { setImmediate } from 'node:timers/promises'
import type { Hub } from '@rejoin/hub'
import type { NewIdFormat } from '@rejoin/hub/log'
import { expect, onTestFinished } from 'vitest'

const channels = ['orders/1', 'orders/2']

/**
 * Publishes through all hubs of one log and reads at each of them, while one hub switches the ids. Expects that no publish
 * fails, that every reader gets every event once, in order and without an alarm, and that an event has one id: the one its
 * publisher was told.
 *
 * @returns the ids of all events, in order
 */
export async function switchUnderLoad(hubs: readonly Hub[], format: NewIdFormat): Promise<string[]> {
  const readers = hubs.map((hub) => readAlways(hub))
  for (const reader of readers) await expect.poll(() => reader.isOpen, { interval: 1 }).toBe(true)
  const published = new Map<string, string>()
  let isOver = false
  const publishers = hubs.flatMap((hub, hubNumber) =>
    channels.map(async (channel) => {
      for (let number = 0; !isOver; number += 1) {
        const data = `${channel} ${hubNumber} ${number}`
        const { id } = await hub.publish(channel, { data })
        published.set(id, data)
        // A log in memory answers without a turn of the event loop, and nobody else would have one.
        await setImmediate()
      }
    }),
  )
  const has = (count: number) => expect.poll(() => published.size, { interval: 1 }).toBeGreaterThan(count)
  await has(200)
  await hubs[0]?.log.switchIds?.(format)
  await has(published.size + 200)
  isOver = true
  await Promise.all(publishers)

  for (const reader of readers) await expect.poll(() => reader.events.size).toBe(published.size)
  const ids = [...(readers[0] as Reader).events.keys()]
  for (const { events, alarms } of readers) {
    expect(alarms).toEqual([])
    expect([...events.keys()]).toEqual(ids)
    expect(new Set(events.values())).toEqual(new Set(published.values()))
  }
  for (const [id, said] of published) expect(readers[0]?.events.get(id)).toBe(said)
  return ids
}

/** Expects that a reader that returns with any of these ids gets all that follow it, and nothing else, at any of the hubs. */
export async function resumeFromEach(hubs: readonly Hub[], ids: readonly string[], every: number): Promise<void> {
  for (const hub of hubs) {
    for (let index = 0; index < ids.length; index += every) {
      const reader = readAlways(hub, ids[index] as string)
      await expect.poll(() => [...reader.events.keys()], { interval: 1 }).toEqual(ids.slice(index + 1))
      expect(reader.alarms).toEqual([])
      reader.leave()
    }
  }
}

interface Reader {
  readonly isOpen: boolean
  /** What it got, by id. An id that comes twice is an alarm. */
  readonly events: ReadonlyMap<string, string>
  readonly alarms: readonly string[]
  leave(): void
}

function readAlways(hub: Hub, from?: string): Reader {
  const events = new Map<string, string>()
  const alarms: string[] = []
  let isOpen = false
  const leaving = new AbortController()
  const leave = () => leaving.abort()
  onTestFinished(leave)
  void (async () => {
    const stream = hub.stream(channels, { signal: leaving.signal, ...(from === undefined ? {} : { from }) })
    for await (const { type, id, data } of stream) {
      if (type === 'sync-required' || events.has(id as string)) alarms.push(`${type} ${id} ${data}`)
      if (type === 'message') events.set(id as string, JSON.parse(data as string))
      isOpen = true
    }
  })()
  return {
    events,
    alarms,
    leave,
    get isOpen() {
      return isOpen
    },
  }
}
