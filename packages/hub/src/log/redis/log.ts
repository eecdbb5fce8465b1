import {
  createEpoch,
  createIdFormats,
  type History,
  type IdCodec,
  type IdFormat,
  type IdFormats,
  isAfter,
  origin,
  type Position,
  RejoinError,
  ulid,
} from '@rejoin/protocol'
import type { Cancel } from '../../environment.ts'
import { Generations } from '../../generations.ts'
import { drawBranchStep } from '../branch-step.ts'
import type {
  Appended,
  AppendOptions,
  BackPage,
  ChannelPage,
  IdSwitch,
  IdSwitchOptions,
  Log,
  LogBudget,
  LogEvent,
  LogSource,
  NewEvent,
  NewIdFormat,
  OrdersCall,
  OrdersPage,
  Page,
  PageLimit,
  Stamp,
  Tail,
  TailBatch,
  Window,
  WindowOptions,
} from '../contract.ts'
import { planIdSwitch, positionBehind } from '../id-switch.ts'
import { keyLimits } from '../idempotency.ts'
import { idsOf, openFormats } from '../stored-formats.ts'
import { budgetOf, createWindows, type Windows, windowOf } from '../window.ts'
import { checkAddress, clientAt } from './address.ts'
import { type Answers, createAppends } from './appends.ts'
import { parseFormats, parseTold } from './branches.ts'
import { noAofWarning, replicasWarning, type ServerFacts, unavailable } from './checks.ts'
import { connectorOf, type RedisClient } from './client.ts'
import { type Confirmation, createConfirmation } from './confirmation.ts'
import { bodyOf, parsePosition, positionText } from './entry.ts'
import { createFlushing, type Flushing, flushingCommand } from './flushing.ts'
import { createGreeting } from './greeting.ts'
import { closedError, createLink, type Link, type Reply } from './link.ts'
import type { RedisLogOptions } from './options.ts'
import { appendedAs, digestOf } from './outcome.ts'
import { reportPutBack } from './put-back.ts'
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
 *   connections of its own, and does not use or close the client itself. An address (`redis://…`) will do where one of the
 *   packages is installed.
 */
export function redisLog(client: RedisClient | string | URL, options: RedisLogOptions = {}): LogSource {
  const { prefix = 'rejoin', clock = 'redis', codec, durability = 'server', replicas = 1 } = options
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
  const maxBytes = budgetOf(options.maxBytes)
  const key = `{${prefix}}:log`
  const address = typeof client === 'string' || client instanceof URL ? String(client) : undefined
  if (address !== undefined) checkAddress(address)
  const given = address === undefined ? connectorOf(client as RedisClient, key) : undefined
  return {
    name: 'redis',
    async open(environment) {
      const connector = given ?? connectorOf(await clientAt(address as string), key)
      const formats = createIdFormats([{ codec: codec ?? ulid() }])
      const formatsOf = (ids: string) => openFormatsOf(ids, codec, prefix)
      const settings: ScriptSettings = {
        prefix: `{${prefix}}:`,
        writer: createEpoch(Math.random) + createEpoch(Math.random),
        range: formats.range,
        window,
        windows: windows.named,
        feed: numbers.feed,
        idempotency: keyLimits(options.idempotency),
        forgetAfterMs: options.forgetAfterMs ?? 30 * 24 * 3_600_000,
        maxBytes,
      }
      const state = createKnownState(formats, formatsOf)
      const now = () => (clock === 'hub' ? String(Math.max(0, Math.floor(environment.now()))) : '')
      const warn = options.onWarning ?? ((message: string) => process.emitWarning(message))
      let facts: ServerFacts = { aof: false, waitAof: false, replicas: 0 }
      const onServer = (found: ServerFacts, isNew: boolean) => {
        facts = found
        if (!isNew) return
        if (!found.aof) warn(noAofWarning)
        if (durability === 'replicated' && found.replicas < replicas) warn(replicasWarning(found.replicas, replicas))
      }
      const greet = createGreeting({
        settings,
        ids: idsOf(codec ?? ulid()),
        formatsOf,
        state,
        environment,
        now,
        onServer,
      })
      const link = createLink({
        connector,
        greet,
        keys: keysOf(settings.prefix),
        answerWithinMs: checked.answerWithinMs,
        repairStep: 'repair',
      })
      try {
        const flushing = createFlushing(warn)
        const [head, flushed] = await link.stepThen(flushingCommand, 'head', '')
        state.see(parsePosition(head[0] as string))
        flushing.learn(flushed)
        const confirmation =
          durability === 'server'
            ? undefined
            : createConfirmation({
                durability,
                replicas,
                link,
                state,
                flushing,
                answerWithinMs: checked.answerWithinMs,
                facts: () => facts,
                writeStep: () => ['probe', seenText(state), now()],
              })
        confirmation?.check()
        const sweep = (ask: Ask) =>
          startSweep(ask, environment, { maxAgeMs: windows.shortestAgeMs, hasBudget: maxBytes !== undefined })
        const onPutBack = (fork: Position) => reportPutBack(link, state, environment, now(), fork)
        const { random } = environment
        return new RedisLog({ link, state, settings, windows, flushing, confirmation, now, random, sweep, onPutBack })
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
  readonly flushing: Flushing
  readonly confirmation: Confirmation | undefined
  now(): string
  random(): number
  sweep(ask: Ask): Cancel
  onPutBack(fork: Position): Promise<void>
}

class RedisLog implements Log {
  readonly name = 'redis'
  readonly window: Required<WindowOptions>

  readonly #link: Link
  readonly #state: KnownState
  readonly #settings: ScriptSettings
  readonly #windows: Windows
  readonly #flushing: Flushing
  readonly #confirmation: Confirmation | undefined
  readonly #now: () => string
  readonly #random: () => number
  readonly #onPutBack: Parts['onPutBack']
  readonly #stopSweep: Cancel
  readonly #tails = new Set<Tail>()
  readonly #appends = createAppends(
    (number, args) => this.#send(number, args),
    (outcome, at, entries) => this.#appendedAs(outcome, at, entries),
  )
  /** The last appends. The script recognises a call that is sent again; who asks this log again is recognised here. */
  readonly #tokens = new Generations<Promise<Appended>>()
  /** Calls that are under way. */
  #writes = 0
  /** By the machine's own clock, as everything about connections. */
  #heardAt = performance.now()
  #closed = false

  constructor({ link, state, settings, windows, flushing, confirmation, now, random, sweep, onPutBack }: Parts) {
    this.#link = link
    this.#state = state
    this.#settings = settings
    this.#windows = windows
    this.#now = now
    this.#random = random
    this.#onPutBack = onPutBack
    this.#flushing = flushing
    this.#confirmation = confirmation
    this.window = settings.window
    this.#stopSweep = sweep(this.#ask)
  }

  get durability(): Log['durability'] {
    return this.#confirmation?.durability ?? this.#flushing.durability
  }

  get history(): History {
    return this.#state.history
  }

  get formats(): IdFormats {
    return this.#state.formats
  }

  /** Not async itself: of every publish, each promise less counts. */
  append(entries: readonly NewEvent[], { token, once }: AppendOptions): Promise<Appended> {
    if (this.#closed) return Promise.reject(closedError())
    if (entries.length === 0) return Promise.resolve({ stamps: [], repeated: false })
    const earlier = this.#tokens.get(token)
    if (earlier) return earlier.then(({ stamps }) => ({ stamps, repeated: true }))
    if (this.#appends.waiting >= mostWaiting) {
      const full = `${mostWaiting} publishes wait for Redis. Try again when some are done.`
      return Promise.reject(new RejoinError(full, { code: 'log-unavailable', retryable: true }))
    }
    const added = this.#appends.add(entries, once, once ? digestOf(once) : '')
    const appended = this.#confirmation ? this.#confirmed(added) : added
    this.#tokens.setAtMost(tokensKept, token, appended)
    return appended
  }

  /** Also of a repeated publish: the first try may have failed because of this. */
  async #confirmed(added: Promise<Appended>): Promise<Appended> {
    const appended = await added
    await this.#confirmation?.confirmed(appended.stamps.at(-1)?.position)
    return appended
  }

  #appendedAs(outcome: string, callAt: number, entries: readonly NewEvent[]): Appended {
    const appended = appendedAs(outcome, callAt, entries.length, (first) => this.#maxSeqAt(first))
    this.#state.see((appended.stamps.at(-1) as Stamp).position)
    // Acknowledged, and maybe lost before the tail has heard of it.
    for (let index = 0; index < entries.length; index += 1) {
      const { live, channel } = entries[index] as NewEvent
      if (!live) this.#state.channels.note(channel, (appended.stamps[index] as Stamp).position)
    }
    return appended
  }

  /** Of an append that is repeated, as it was then: its entries stand where they stood, whatever ids have become since. */
  #maxSeqAt(position: Position): number {
    const { list, range } = this.formats
    const holds = ({ since = origin }: IdFormat) => !isAfter(since, position)
    return list.every(holds) ? range.maxSeq : createIdFormats(list.filter(holds)).range.maxSeq
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
    const [text = '', at, previous = '', epoch] = (await this.#ask(
      step,
      channel,
      bodyOf(step === 'end' ? 'z' : 'i', entry),
    )) as string[]
    const position = parsePosition(text)
    await this.#met(position, epoch as string)
    this.#state.channels.note(channel, position)
    await this.#confirmation?.confirmed(position)
    const kind = step === 'end' ? 'end' : 'invalidation'
    return { kind, ...entry, position, at: Number(at), previous: parsePosition(previous) }
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
      link: this.#link,
      state: this.#state,
      prefix: this.#settings.prefix,
      after,
      onBatch,
      refresh: () => this.#refresh(),
      onPutBack: this.#onPutBack,
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
    const page = await registryPage(this.#ask, prefix, after, Math.max(1, Math.min(limit, mostListed)))
    return page.channels.map((channel) => windowIn(channel, this.#state, page.forgottenThrough))
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

  async budget(): Promise<LogBudget | undefined> {
    this.#assertOpen()
    const { maxBytes } = this.#settings
    if (maxBytes === undefined) return undefined
    const [held] = await this.#ask('budget')
    return { usedBytes: Number(held), maxBytes }
  }

  async switchIds(format: NewIdFormat, { dryRun = false }: IdSwitchOptions = {}): Promise<IdSwitch> {
    this.#assertOpen()
    this.#appends.flush()
    for (let round = 0; round < switchRounds; round += 1) {
      await this.#refresh()
      const { epoch, seen } = this.#state
      const planned = planIdSwitch(this.formats, format, { lasting: true })
      if (!planned.isNew || dryRun) return planned.told(this.formats)
      const { maxSeq, minMs } = planned.since(positionBehind(seen as Position)).range
      const opened = createEpoch(this.#random)
      const branch = [opened, String(drawBranchStep(this.#random)), createEpoch(this.#random)]
      const version = format.version === undefined ? '' : ` ${format.version}`
      const range = [String(maxSeq), String(minMs)]
      const lines = await this.#ask('ids', epoch, ...branch, idsOf(format.codec), version, ...range)
      this.#state.adopt(parseTold(lines as string[]))
      // Otherwise another hub has opened a branch in between.
      if (this.history.some((known) => known.epoch === opened)) {
        await this.#confirmation?.confirmed()
        return planned.told(this.formats)
      }
    }
    throw unavailable('other hubs open branches all the time')
  }

  async head(): Promise<Position> {
    this.#assertOpen()
    const [last, epoch] = (await this.#link.step('head', this.#seen)) as [string, string]
    const position = parsePosition(last)
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
    // A confirmation is worth nothing on a server that no longer flushes, whatever it said before.
    const isAsked = this.#confirmation !== undefined || this.#flushing.isDue(this.#writes > 0)
    this.#writes += 1
    try {
      const command = isAsked ? flushingCommand : undefined
      const [reply, flushed] = await this.#link.stepThen(command, step, this.#seen, this.#now(), ...args)
      if (isAsked) this.#flushing.learn(flushed)
      return reply
    } finally {
      this.#writes -= 1
    }
  }

  get #seen(): string {
    return seenText(this.#state)
  }

  /** A position of the log, on a branch that may have been opened by another hub. */
  async #met(position: Position, epoch: string): Promise<void> {
    await this.#follow(epoch)
    this.#state.see(position)
  }

  /** Goes over to the branch of an answer. One that is of an earlier branch came too late: its positions may be others' by now. */
  async #follow(epoch: string): Promise<void> {
    if (epoch === this.#state.epoch) return
    await this.#refresh()
    if (epoch !== this.#state.epoch) throw unavailable('its log has gone on on another branch meanwhile')
  }

  async #refresh(): Promise<void> {
    this.#state.adopt(parseTold((await this.#link.step('history')) as string[]))
  }

  #assertOpen(): void {
    if (this.#closed) throw closedError()
  }
}

function seenText({ seen }: KnownState): string {
  return seen ? positionText(seen) : ''
}

// As many hubs can open a branch between two calls before a switch of the ids is given up.
const switchRounds = 5
// At 20,000 a second, half a second's worth: who comes later is better told at once.
const mostWaiting = 10_000
// What is kept here is young, and the engine's collector moves it: a thousand were a tenth of a second of publishes.
const tokensKept = 256
// Redis answers nobody else meanwhile: some 20 ms.
const mostListed = 5000

/** A hub whose codec was not named takes the log for one that dates its events, and its script does. */
function openFormatsOf(ids: string, codec: IdCodec | undefined, prefix: string): IdFormats {
  const formats = openFormats(parseFormats(ids), codec, `The log under ${prefix}`)
  if (formats.range.kind === (codec ?? ulid()).clock) return formats
  return refuse(`The log under ${prefix} counts its events. Open it with the codec sequence().`)
}

function refuse(message: string): never {
  throw new RejoinError(message, { code: 'invalid-option' })
}
