import {
  createEpoch,
  createIdFormats,
  type History,
  type IdFormats,
  type Position,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Cancel } from '../../environment.ts'
import type {
  Appended,
  AppendOptions,
  BackPage,
  ChannelPage,
  Log,
  LogEvent,
  LogSource,
  NewEvent,
  OrdersCall,
  OrdersPage,
  Page,
  PageLimit,
  Place,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from '../contract.ts'
import { keyLimits } from '../idempotency.ts'
import { idsOf } from '../ids-of.ts'
import { createWindows, type Windows, windowOf } from '../window.ts'
import { type Answers, createAppends } from './appends.ts'
import { parseBranches } from './branches.ts'
import { noAofWarning, replicasWarning, type ServerFacts, unavailable } from './checks.ts'
import { connectorOf, type RedisClient } from './client.ts'
import { type Confirmation, createConfirmation } from './confirmation.ts'
import { bodyOf, parsePlace, placeText } from './entry.ts'
import { createFlushing, type Flushing, flushingCommand } from './flushing.ts'
import { createGreeting } from './greeting.ts'
import { createLastOnes } from './last-ones.ts'
import { closedError, createLink, type Link, type Reply } from './link.ts'
import type { RedisLogOptions } from './options.ts'
import { appendedAs, digestOf } from './outcome.ts'
import { readBack, readPage } from './read.ts'
import { type Ask, registryPage } from './registry.ts'
import { retainedOf } from './retained.ts'
import { keysOf, type ScriptSettings } from './script/script.ts'
import { createKnownState, type KnownState } from './state.ts'
import { startSweep } from './sweep.ts'
import { followFeed } from './tail.ts'
import { windowIn, windowsOfNames } from './windows.ts'

export type { IoRedisClient, NodeRedisClient, RedisClient } from './client.ts'
export type { FeedOptions, RedisLogOptions } from './options.ts'

/**
 * A log in Redis, 7.0 or later, shared by any number of hubs: each gives the same ids and the same promise.
 *
 * @param client - of the package `ioredis` or `redis`, also that of a Cluster. The log connects like it does, with two
 *   connections of its own, and does not use or close the client itself.
 */
export function redisLog(client: RedisClient, options: RedisLogOptions = {}): LogSource {
  const { prefix = 'rejoin', clock = 'redis', codec = ulid(), durability = 'server', replicas = 1 } = options
  if (!/^[^{}\s]+$/.test(prefix)) refuse(`prefix is ${JSON.stringify(prefix)}. Use a name without braces and spaces.`)
  if (clock !== 'redis' && clock !== 'hub') refuse(`clock is ${JSON.stringify(clock)}. Choose 'redis' or 'hub'.`)
  if (!['server', 'disk', 'replicated'].includes(durability)) {
    refuse(`durability is ${JSON.stringify(durability)}. Choose 'server', 'disk' or 'replicated'.`)
  }
  const numbers = { feed: { maxAgeMs: 300_000, maxBytes: 256 * 1024 * 1024, ...options.feed }, answerWithinMs: 5000 }
  const checked = { ...numbers.feed, answerWithinMs: options.answerWithinMs ?? numbers.answerWithinMs, replicas }
  for (const [name, value] of Object.entries(checked)) {
    if (!(value >= 1)) refuse(`${name} is ${value}. Give a number of 1 or more, or leave it out.`)
  }
  const window = windowOf(options.window, { maxEvents: 1000, maxAgeMs: 3_600_000, maxBytes: 16 * 1024 * 1024 })
  const windows = createWindows(window, options.windows)
  const connector = connectorOf(client, `{${prefix}}:log`)
  return {
    name: 'redis',
    async open(environment) {
      const formats = createIdFormats([{ codec }])
      const settings: ScriptSettings = {
        prefix: `{${prefix}}:`,
        writer: createEpoch(Math.random) + createEpoch(Math.random),
        range: formats.range,
        window,
        windows: windows.named,
        feed: numbers.feed,
        idempotency: keyLimits(options.idempotency),
        forgetAfterMs: options.forgetAfterMs ?? 30 * 24 * 3_600_000,
      }
      const state = createKnownState()
      const now = () => (clock === 'hub' ? String(Math.max(0, Math.floor(environment.now()))) : '')
      const warn = options.onWarning ?? ((message: string) => process.emitWarning(message))
      let facts: ServerFacts = { aof: false, waitAof: false, replicas: 0 }
      const onServer = (found: ServerFacts, isNew: boolean) => {
        facts = found
        if (!isNew) return
        if (!found.aof) warn(noAofWarning)
        if (durability === 'replicated' && found.replicas < replicas) warn(replicasWarning(found.replicas, replicas))
      }
      const greet = createGreeting({ settings, ids: idsOf(codec), codec, state, environment, now, onServer })
      const link = createLink({
        ...{ connector, greet, keys: keysOf(settings.prefix) },
        answerWithinMs: checked.answerWithinMs,
        repairStep: 'repair',
      })
      try {
        const flushing = createFlushing(warn)
        const [head, flushed] = await link.stepThen(flushingCommand, 'head', '')
        state.see(parsePlace(head[0] as string))
        flushing.learn(flushed)
        const confirmation =
          durability === 'server'
            ? undefined
            : createConfirmation({
                ...{ durability, replicas, link, state, flushing, answerWithinMs: checked.answerWithinMs },
                facts: () => facts,
                writeStep: () => ['probe', seenText(state), now()],
              })
        confirmation?.check()
        const sweep = (ask: Ask) => startSweep(ask, environment, windows.shortestAgeMs)
        return new RedisLog({ link, state, settings, windows, formats, flushing, confirmation, now, sweep })
      } catch (error) {
        link.close()
        throw error
      }
    },
  }
}

interface Parts {
  readonly link: Link
  readonly state: KnownState
  readonly settings: ScriptSettings
  readonly windows: Windows
  readonly formats: IdFormats
  readonly flushing: Flushing
  readonly confirmation: Confirmation | undefined
  now(): string
  sweep(ask: Ask): Cancel
}

class RedisLog implements Log {
  readonly name = 'redis'
  readonly window: Required<WindowOptions>
  readonly formats: IdFormats

  readonly #link: Link
  readonly #state: KnownState
  readonly #settings: ScriptSettings
  readonly #windows: Windows
  readonly #flushing: Flushing
  readonly #confirmation: Confirmation | undefined
  readonly #now: () => string
  readonly #stopSweep: Cancel
  readonly #tails = new Set<Tail>()
  readonly #appends = createAppends(
    (number, args) => this.#send(number, args),
    (outcome, at, entries) => this.#appendedAs(outcome, at, entries),
  )
  /** The last appends. The script recognises a call that is sent again; who asks this log again is recognised here. */
  readonly #tokens = createLastOnes<Promise<Appended>>(tokensKept)
  /** By the machine's own clock, as everything about connections. */
  #heardAt = performance.now()
  #closed = false

  constructor({ link, state, settings, windows, formats, flushing, confirmation, now, sweep }: Parts) {
    this.#link = link
    this.#state = state
    this.#settings = settings
    this.#windows = windows
    this.#now = now
    this.#flushing = flushing
    this.#confirmation = confirmation
    this.window = settings.window
    this.formats = formats
    this.#stopSweep = sweep(this.#ask)
  }

  get durability(): Log['durability'] {
    return this.#confirmation?.durability ?? this.#flushing.durability
  }

  get history(): History {
    return this.#state.history
  }

  /** Not async itself: of every publish, each promise less counts. */
  append(entries: readonly NewEvent[], { token, once }: AppendOptions): Promise<Appended> {
    if (this.#closed) return Promise.reject(closedError())
    if (entries.length === 0) return Promise.resolve({ places: [], repeated: false })
    const earlier = this.#tokens.get(token)
    if (earlier) return earlier.then(({ places }) => ({ places, repeated: true }))
    if (this.#appends.waiting >= mostWaiting) {
      const full = `${mostWaiting} publishes wait for Redis. Try again when some are done.`
      return Promise.reject(new RejoinError(full, { code: 'log-unavailable', retryable: true }))
    }
    const added = this.#appends.add(entries, once, once ? digestOf(once) : '')
    const appended = this.#confirmation ? this.#confirmed(added) : added
    this.#tokens.set(token, appended)
    return appended
  }

  /** Also of a repeated publish: the first try may have failed because of this. */
  async #confirmed(added: Promise<Appended>): Promise<Appended> {
    const appended = await added
    await this.#confirmation?.confirmed(appended.places.at(-1)?.position)
    return appended
  }

  #appendedAs(outcome: string, callAt: number, entries: readonly NewEvent[]): Appended {
    const appended = appendedAs(outcome, callAt, entries.length, this.formats.range.maxSeq)
    this.#state.see((appended.places.at(-1) as Place).position)
    // Acknowledged, and maybe lost before the tail has heard of it.
    for (let index = 0; index < entries.length; index += 1) {
      const { live, channel } = entries[index] as NewEvent
      if (!live) this.#state.channels.note(channel, (appended.places[index] as Place).position)
    }
    return appended
  }

  async #send(number: string, args: readonly string[]): Promise<Answers> {
    const [epoch, at, outcomes] = (await this.#write('append', number, ...args)) as [string, string, string]
    await this.#follow(epoch)
    return { at: Number(at), outcomes: outcomes.split('\n') }
  }

  async invalidate(channel: string): Promise<LogEvent> {
    return this.#mark('invalidate', channel)
  }

  async end(channel: string): Promise<LogEvent> {
    return this.#mark('end', channel)
  }

  async #mark(step: 'invalidate' | 'end', channel: string): Promise<LogEvent> {
    this.#assertOpen()
    this.#appends.flush()
    const entry = { channel, type: '', data: '' }
    const [place = '', at, previous = '', epoch] = (await this.#ask(
      step,
      channel,
      bodyOf(step === 'end' ? 'z' : 'i', entry),
    )) as string[]
    const position = parsePlace(place)
    await this.#met(position, epoch as string)
    this.#state.channels.note(channel, position)
    await this.#confirmation?.confirmed(position)
    const kind = step === 'end' ? 'end' : 'invalidation'
    return { kind, ...entry, position, at: Number(at), previous: parsePlace(previous) }
  }

  async read(names: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    for (;;) {
      const { epoch } = this.#state
      const page = await readPage(this.#ask, names, { after, through, limit }, this.#state)
      // Read in parts, of which some may be of another branch.
      if (epoch === this.#state.epoch) return page
    }
  }

  async readBack(
    names: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    this.#assertOpen()
    return readBack(this.#ask, names, { after, through, most })
  }

  async windows(names: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return windowsOfNames(this.#ask, names, this.#state)
  }

  async retained(names: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    return retainedOf((...args) => this.#link.step(...args), this.#seen, names)
  }

  async tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail> {
    this.#assertOpen()
    const tail = await followFeed({
      ...{ link: this.#link, state: this.#state, prefix: this.#settings.prefix, after, onBatch },
      refresh: () => this.#refresh(),
      onContact: () => {
        this.#heardAt = performance.now()
      },
    })
    this.#tails.add(tail)
    return {
      close: () => {
        this.#tails.delete(tail)
        tail.close()
      },
    }
  }

  async channels({ prefix, after, limit }: ChannelPage): Promise<readonly Window[]> {
    this.#assertOpen()
    const { channels } = await registryPage(this.#ask, prefix, after, Math.max(1, Math.min(limit, mostListed)))
    return channels.map((channel) => windowIn(channel, this.#state))
  }

  windowOf(name: string): Required<WindowOptions> {
    return this.#windows.of(name)
  }

  tailSilenceMs(): number {
    return performance.now() - this.#heardAt
  }

  async meet(note: string, forMs: number): Promise<readonly string[]> {
    this.#assertOpen()
    return (await this.#ask('meet', note, String(forMs))) as string[]
  }

  async orders({ after, forMs, order = '', until, reached = '' }: OrdersCall): Promise<OrdersPage> {
    this.#assertOpen()
    const [posted = '', nodes, confirmed, ...entries] = (await this.#ask(
      ...(['orders', after, String(forMs), order, until === undefined ? '' : String(until), reached] as const),
    )) as string[]
    if (posted === 'full') {
      throw new RejoinError('There is no room for more revocations. Sign with a new key instead.', {
        code: 'overloaded',
      })
    }
    const orders: { id: string; order: string }[] = []
    for (let index = 0; index + 1 < entries.length; index += 2) {
      orders.push({ id: entries[index] as string, order: entries[index + 1] as string })
    }
    return { posted, orders, nodes: Number(nodes), confirmed: Number(confirmed) }
  }

  async probe(): Promise<void> {
    this.#assertOpen()
    await this.#write('probe')
    await this.#confirmation?.confirmed()
  }

  async head(): Promise<Position> {
    this.#assertOpen()
    const [last, epoch] = (await this.#link.step('head', this.#seen)) as [string, string]
    const position = parsePlace(last)
    await this.#met(position, epoch)
    return position
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#stopSweep()
    for (const tail of this.#tails) tail.close()
    // What was published before the close is stored and answered like everything else.
    await this.#appends.settled()
    await this.#confirmation?.close()
    this.#link.close()
  }

  readonly #ask = (step: string, ...args: string[]): Promise<Reply> =>
    this.#link.step(step, this.#seen, this.#now(), ...args)

  /** A step whose answer is worth what Redis does with what it is told. */
  async #write(step: string, ...args: string[]): Promise<Reply> {
    const [reply, flushed] = await this.#link.stepThen(flushingCommand, step, this.#seen, this.#now(), ...args)
    this.#flushing.learn(flushed)
    return reply
  }

  get #seen(): string {
    return seenText(this.#state)
  }

  /** A place of the log, on a branch that may have been opened by another hub. */
  async #met(position: Position, epoch: string): Promise<void> {
    await this.#follow(epoch)
    this.#state.see(position)
  }

  /** Goes over to the branch of an answer. One that is of an earlier branch came too late: its places may be others' by now. */
  async #follow(epoch: string): Promise<void> {
    if (epoch === this.#state.epoch) return
    await this.#refresh()
    if (epoch !== this.#state.epoch) throw unavailable('its log has gone on on another branch meanwhile')
  }

  async #refresh(): Promise<void> {
    this.#state.adopt(parseBranches((await this.#link.step('history')) as string[]))
  }

  #assertOpen(): void {
    if (this.#closed) throw closedError()
  }
}

function seenText({ seen }: KnownState): string {
  return seen ? placeText(seen) : ''
}

// At 20,000 a second, half a second's worth: who comes later is better told at once.
const mostWaiting = 10_000
// What is kept here is young, and the engine's collector moves it: a thousand were a tenth of a second of publishes.
const tokensKept = 256
// Redis answers nobody else meanwhile: some 20 ms.
const mostListed = 5000

function refuse(message: string): never {
  throw new RejoinError(message, { code: 'invalid-option' })
}
