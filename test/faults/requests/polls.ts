import { createRandom } from '@rejoin/hub/testing'
import { type ServedHub, type ServedHubOptions, serveHub } from '../hubs/served-hub.ts'
import { isAnswer, type PollBody } from './polls-judge.ts'
import { type ModelPoll, PollModel } from './polls-model.ts'

/**
 * Publishes, invalidates, ends and restarts at random, with windows of a few events, and polls from everywhere in between: one
 * channel, several, patterns, from any id there ever was. A model that knows nothing of our code says what each answer has to
 * be.
 */
export async function runPolls(options: PollsOptions): Promise<PollsOutcome> {
  const { seed, polls, hubs: places, onProgress } = options
  const random = createRandom(seed)
  const below = (count: number) => Math.floor(random() * count)
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)] as Item
  const maxEvents = 2 + below(5)
  const wrong: string[] = []
  const counts = {
    polls: 0,
    published: 0,
    restarts: 0,
    resumed: 0,
    gaps: 0,
    'resumed, then gaps': 0,
    beheaded: 0,
    fresh: 0,
    'nothing more': 0,
    deleted: 0,
  }
  let model = new PollModel(maxEvents)
  let published = 0
  // Hubs that keep nothing in memory have to answer exactly as the window says; others may have more.
  const optionsOf = (place: ServedHubOptions, index: number) => ({
    ...place,
    window: { maxEvents },
    ...(index % 2 === 0 ? { hotBytes: 1 } : {}),
  })
  const serving = await Promise.all(places.map((place, index) => serveHub(optionsOf(place, index))))
  const foreign = await foreignId()

  async function publish(hub: ServedHub): Promise<void> {
    const entries = Array.from({ length: pick([1, 1, 1, 2, 5]) }, () => {
      published += 1
      return { channel: pick(channels), type: pick(types), text: `${published}` }
    }).filter(({ channel }) => !model.hasEnded(channel))
    if (entries.length === 0) return
    const key = random() < 0.2 ? { 'Idempotency-Key': `${seed}-${published}` } : undefined
    const answers: unknown[] = []
    for (let times = key ? 2 : 1; times > 0; times -= 1) {
      const body = JSON.stringify(entries)
      answers.push(await (await fetch(`${at(hub)}/publish`, { method: 'POST', body, headers: { ...key } })).json())
    }
    const { events } = answers[0] as { events: { id: string }[] }
    const ids = answers.map((answer) => (answer as { events: { id: string }[] }).events.map(({ id }) => id).join())
    if (new Set(ids).size > 1) wrong.push('One key gave two answers.')
    for (const [index, { channel, type, text }] of entries.entries()) {
      model.published({ id: events[index]?.id as string, channel, type, data: text })
    }
    counts.published += entries.length
  }

  async function change(): Promise<void> {
    const index = below(serving.length)
    const hub = serving[index] as ServedHub
    const chance = random()
    if (chance < 0.9) return publish(hub)
    if (chance < 0.96) {
      const channel = pick(channels)
      await hub.hub.invalidate(channel)
      model.invalidated(channel)
      // Nothing else happens, so the head is where that stands. A gap may be told to begin there.
      const { cursor } = (await (await fetch(`${at(hub)}/poll/nothing?waitMs=0`)).json()) as PollBody
      if (cursor !== null) model.reached(cursor)
    } else if (chance < 0.97) {
      const channel = pick(['b/2', 'c'])
      const isNew = !model.hasEnded(channel)
      const { id } = await hub.hub.end(channel)
      if (isNew) {
        model.ended(channel)
        model.reached(id)
      }
    } else if (counts.restarts * 200 < counts.polls) {
      counts.restarts += 1
      await hub.close()
      // A log in memory begins anew, and so does what is true.
      const place = places[index] as ServedHubOptions
      if (place.directory === undefined && !place.redis) model = new PollModel(maxEvents)
      serving[index] = await serveHub(optionsOf(place, index))
    }
  }

  async function poll(): Promise<void> {
    const index = below(serving.length)
    const hub = serving[index] as ServedHub
    const asked = drawPoll()
    // What another hub has published is here.
    await hub.hub.admin.probe()
    const answer = await fetch(`${at(hub)}/poll?${queryOf(asked)}`)
    const text = await answer.text()
    const got = { status: answer.status, ...(text === '' ? {} : (JSON.parse(text) as Partial<PollBody>)) }
    counts.polls += 1
    const allowed = model.answers(asked).slice(0, index % 2 === 0 ? 1 : 3)
    const fits = allowed.find((expected) => isAnswer(expected, asked, got))
    if (!fits) {
      wrong.push(JSON.stringify({ poll: counts.polls, hub: index, maxEvents, asked, got, allowed }))
      return
    }
    counts[countedAs[fits.kind]] += 1
    // A reader of what has ended is sent away from where it began, if nothing came after that.
    // One from the beginning may be sent away from where it is whole, which others than its channels have moved on from.
    const isAtTheHead = fits.kind !== 'beheaded' && !('isOver' in fits && fits.isOver)
    if (got.cursor && isAtTheHead) model.reached(got.cursor)
  }

  function drawPoll(): ModelPoll {
    const names = Array.from(new Set(Array.from({ length: pick([1, 1, 2, 4]) }, () => pick(selectors))))
    const from = pick(['cursor', 'cursor', 'cursor', 'cursor', 'now', 'earliest', 'last'] as const)
    const filter = random() < 0.25 ? [pick(types)] : []
    if (from === 'now' || from === 'earliest') return { names, types: filter, start: { from } }
    if (from === 'last') return { names, types: filter, start: { from, events: pick([0, 1, 2, 3, 7, 1000]) } }
    const { ids } = model
    const start = random() < 0.05 || ids.length === 0 ? pick(bad) : { cursor: recent(ids) }
    return { names, types: filter, start: { from, ...start } }
  }

  /** Most readers were here a moment ago. */
  function recent(ids: readonly string[]): string {
    return random() < 0.2 ? pick(ids) : (ids[Math.max(0, ids.length - 1 - below(40))] as string)
  }

  const bad = [
    { cursor: 'nonsense', reasons: ['unknown-id'] },
    { cursor: foreign, reasons: ['epoch'] },
  ]

  try {
    while (counts.polls < polls && wrong.length < 5) {
      if (random() < 0.4) await change()
      else await poll()
      if (counts.polls % 5000 === 0 && counts.polls > 0) onProgress?.(`${counts.polls} polls`)
    }
  } finally {
    await Promise.all(serving.map((hub) => hub.close()))
  }
  return { counts, wrong }
}

export interface PollsOptions {
  readonly seed: number
  readonly polls: number
  /** Where the hubs keep their events: one in memory, one in a folder, or several on one Redis. */
  readonly hubs: readonly Pick<ServedHubOptions, 'directory' | 'redis'>[]
  onProgress?(text: string): void
}

export interface PollsOutcome {
  readonly counts: Readonly<Record<string, number>>
  /** What was answered and what should have been; at most a few. */
  readonly wrong: readonly string[]
}

const channels = ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'c']
const selectors = [...channels, ...channels, 'a/*', 'b/*', '*', 'nothing', 'nothing/*']
const types = ['message', 'other']

const countedAs = {
  fresh: 'fresh',
  resumed: 'resumed',
  gap: 'gaps',
  beheaded: 'beheaded',
  'resumed-then-gap': 'resumed, then gaps',
  'nothing-more': 'nothing more',
  deleted: 'deleted',
} as const

function queryOf({ names, types, start }: ModelPoll): string {
  const query = new URLSearchParams({ waitMs: '0' })
  for (const name of names) query.append('channel', name)
  for (const type of types) query.append('type', type)
  if (start.from === 'cursor') query.set('lastEventId', start.cursor)
  if (start.from === 'earliest') query.set('lastEventId', 'earliest')
  if (start.from === 'last') query.set('replay', String(start.events))
  return query.toString()
}

/** An id of another log. */
async function foreignId(): Promise<string> {
  const other = await serveHub()
  const { id } = await other.hub.publish('a/1', { data: 1 })
  await other.close()
  return id
}

function at({ port }: ServedHub): string {
  return `http://127.0.0.1:${port}`
}
