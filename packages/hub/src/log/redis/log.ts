import {
  createIdFormats,
  type History,
  type IdFormat,
  type IdFormats,
  isAfter,
  latest,
  origin,
  type Position,
  RejoinError,
} from '@rejoin/protocol'
import type { Cancel, Environment } from '../../environment.ts'
import { Generations } from '../../generations.ts'
import type { Complete } from '../../with-defaults.ts'
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
import { type Answers, appendedAs, createAppends, digestOf } from './appends.ts'
import { parseStoredHistory } from './branches.ts'
import { unavailable } from './checks.ts'
import { checkAddress, clientAt, connectorOf, type RedisClient } from './client.ts'
import { bodyOf, parsePosition } from './entry.ts'
import { flushingCommand } from './flushing.ts'
import { type Ask, closedError, type Reply } from './link.ts'
import { reportPutBack, switchIds } from './new-branch.ts'
import { type OpenedLog, openLog } from './opening.ts'
import { type RedisLogOptions, type RedisSettings, settingsOf } from './options.ts'
import { readBack, readPage, retainedOf } from './read.ts'
import { seenText } from './state.ts'
import { startSweep } from './sweep.ts'
import { followFeed } from './tail.ts'
import { registryPage, windowIn, windowsOfSelectors } from './windows.ts'

export type { IoRedisClient, NodeRedisClient, RedisClient } from './client.ts'
export type { FeedOptions, RedisLogOptions } from './options.ts'

/**
 * A log in Redis 7.0 or later, which any number of hubs can share. All of them give the same ids and the same promises.
 *
 * @param client - a client of the package `ioredis` or `redis`, also of a Cluster. The log connects in the same way, with two
 *   connections of its own, and neither uses nor closes the client. An address (`redis://…`) will do when one of the packages is
 *   installed.
 */
export function redisLog(client: RedisClient | string | URL, options: RedisLogOptions = {}): LogSource {
  const settings = settingsOf(options)
  const key = `{${settings.prefix}}:log`
  const address = typeof client === 'string' || client instanceof URL ? String(client) : undefined
  if (address !== undefined) checkAddress(address)
  const given = address === undefined ? connectorOf(client as RedisClient, key) : undefined
  return {
    name: 'redis',
    async open(environment) {
      const connector = given ?? connectorOf(await clientAt(address as string), key)
      return new RedisLog(await openLog(connector, settings, environment), settings, environment)
    },
  }
}

class RedisLog implements Log {
  readonly name = 'redis'
  readonly window: Complete<WindowOptions>

  readonly #opened: OpenedLog
  readonly #settings: RedisSettings
  readonly #environment: Environment
  readonly #stopSweep: Cancel
  readonly #tails = new Set<Tail>()
  readonly #appends = createAppends(
    (number, args) => this.#send(number, args),
    (outcome, at, entries) => this.#appendedAs(outcome, at, entries),
  )
  /** The last appends by their tokens, for a hub that repeats one. The script recognises a call that a connection repeats. */
  readonly #tokens = new Generations<Promise<Appended>>()
  /** The number of writing calls that are under way. */
  #writes = 0
  /** When the tail last heard from Redis, by the clock of the machine, like all times of connections. */
  #heardAt = performance.now()
  #closed = false

  constructor(opened: OpenedLog, settings: RedisSettings, environment: Environment) {
    this.window = settings.window
    this.#opened = opened
    this.#settings = settings
    this.#environment = environment
    const sweeping = { maxAgeMs: settings.windows.shortestAgeMs, hasBudget: settings.maxBytes !== undefined }
    this.#stopSweep = startSweep(this.#ask, environment, sweeping)
  }

  get durability(): Log['durability'] {
    return this.#opened.confirmation?.durability ?? this.#opened.flushing.durability
  }

  get history(): History {
    return this.#opened.state.history
  }

  get formats(): IdFormats {
    return this.#opened.state.formats
  }

  /** Not `async`, because each promise less makes a publish cheaper. */
  append(entries: readonly NewEvent[], { token, once }: AppendOptions): Promise<Appended> {
    if (this.#closed) return Promise.reject(closedError())
    if (entries.length === 0) return Promise.resolve({ stamps: [], repeated: false })
    const earlier = this.#tokens.get(token)
    if (earlier) return earlier.then(({ stamps }) => ({ stamps, repeated: true }))
    if (this.#appends.waiting >= mostWaiting) {
      const full = `${mostWaiting} publishes wait for Redis. Retry when some are done.`
      return Promise.reject(new RejoinError(full, { code: 'log-unavailable', retryable: true }))
    }
    const added = this.#appends.add(entries, once, once ? digestOf(once) : '')
    const appended = this.#opened.confirmation ? this.#confirmed(added) : added
    this.#tokens.setAtMost(tokensKept, token, appended)
    return appended
  }

  /** A repeated publish waits, too: the first try may have failed because its wait took too long. */
  async #confirmed(added: Promise<Appended>): Promise<Appended> {
    const appended = await added
    await this.#opened.confirmation?.confirmed(appended.stamps.at(-1)?.position)
    return appended
  }

  #appendedAs(outcome: string, callAt: number, entries: readonly NewEvent[]): Appended {
    const appended = appendedAs(outcome, callAt, entries.length, (first) => this.#maxSeqAt(first))
    this.#opened.state.see((appended.stamps.at(-1) as Stamp).position)
    // Notes the events at once: a failover may lose them after they are acknowledged and before the tail has heard of them.
    for (let index = 0; index < entries.length; index += 1) {
      const { live, channel } = entries[index] as NewEvent
      if (!live) this.#opened.state.channels.note(channel, (appended.stamps[index] as Stamp).position)
    }
    return appended
  }

  /**
   * The largest `seq` when a position was assigned. A repeated append needs it: its entries keep their positions after a
   * switch.
   */
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
    this.#opened.state.channels.note(channel, position)
    await this.#opened.confirmation?.confirmed(position)
    const kind = step === 'end' ? 'end' : 'invalidation'
    return { kind, ...entry, position, at: Number(at), previous: parsePosition(previous) }
  }

  async read(selectors: readonly string[], after: Position, through: Position, limit: PageLimit): Promise<Page> {
    this.#assertOpen()
    for (;;) {
      const { epoch } = this.#opened.state
      const page = await readPage(this.#ask, selectors, { after, through, limit }, this.#opened.state)
      // A page is read in parts. When a branch opened meanwhile, the parts may be of different branches.
      if (epoch === this.#opened.state.epoch) return page
    }
  }

  async readBack(
    selectors: readonly string[],
    after: Position,
    through: Position,
    most: number,
  ): Promise<BackPage | undefined> {
    this.#assertOpen()
    const page = await readBack(this.#ask, selectors, { after, through, most })
    // Where Redis was emptied, the history still has the branches of before. A reader that began on one of them would be notified of a
    // loss, instead of getting the events that there are.
    return page && { ...page, wholeAfter: latest(page.wholeAfter, this.#opened.state.base) }
  }

  async windows(selectors: readonly string[]): Promise<readonly Window[]> {
    this.#assertOpen()
    return windowsOfSelectors(this.#ask, selectors, this.#opened.state)
  }

  async retained(selectors: readonly string[]): Promise<readonly LogEvent[] | undefined> {
    this.#assertOpen()
    return retainedOf(this.#ask, selectors)
  }

  async tail(after: Position, onBatch: (batch: TailBatch) => void): Promise<Tail> {
    this.#assertOpen()
    const tail = await followFeed({
      link: this.#opened.link,
      state: this.#opened.state,
      prefix: this.#opened.keyPrefix,
      after,
      onBatch,
      refresh: () => this.#refresh(),
      onPutBack: (fork) =>
        reportPutBack(this.#opened.link, this.#opened.state, this.#environment, this.#opened.now(), fork),
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
    return page.channels.map((channel) => windowIn(channel, this.#opened.state, page.forgottenThrough))
  }

  windowOf(name: string): Complete<WindowOptions> {
    return this.#settings.windows.of(name)
  }

  tailSilenceMs(): number {
    return performance.now() - this.#heardAt
  }

  async meet(note: string, forMs: number): Promise<readonly string[]> {
    this.#assertOpen()
    return (await this.#ask('meet', note, String(forMs))) as string[]
  }

  async orders(call: OrdersCall): Promise<OrdersPage> {
    this.#assertOpen()
    return exchangeOrders(this.#ask, call)
  }

  async putIfAbsent(name: string, text: string, forMs?: number): Promise<string> {
    this.#assertOpen()
    const lifetime = forMs === undefined ? '' : String(Math.max(1, Math.ceil(forMs)))
    const [, standing] = (await this.#write('put', name, text, lifetime)) as string[]
    await this.#opened.confirmation?.confirmed()
    return standing as string
  }

  async clock(): Promise<number> {
    this.#assertOpen()
    const [ms] = await this.#ask('clock')
    return Number(ms)
  }

  async probe(): Promise<void> {
    this.#assertOpen()
    await this.#write('probe')
    await this.#opened.confirmation?.confirmed()
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
    const { random } = this.#environment
    const refresh = () => this.#refresh()
    const switched = await switchIds({ ask: this.#ask, state: this.#opened.state, random, refresh }, format, dryRun)
    if (!dryRun) await this.#opened.confirmation?.confirmed()
    return switched
  }

  async head(): Promise<Position> {
    this.#assertOpen()
    const [last, epoch] = (await this.#ask('head')) as [string, string]
    const position = parsePosition(last)
    await this.#met(position, epoch)
    return position
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#stopSweep()
    for (const tail of this.#tails) tail.close()
    // Publishes from before the close are stored and answered as usual.
    await this.#appends.settled()
    await this.#opened.confirmation?.close()
    await this.#opened.leave()
    this.#opened.link.close()
  }

  readonly #ask = (step: string, ...args: string[]): Promise<Reply> =>
    this.#opened.link.step(step, this.#seen, this.#opened.now(), ...args)

  /** Runs a step that writes, and learns how safe the write is by the settings of Redis. */
  async #write(step: string, ...args: string[]): Promise<Reply> {
    // With a confirmation the settings are read every time: WAITAOF is worth nothing on a server that no longer flushes.
    const isAsked = this.#opened.confirmation !== undefined || this.#opened.flushing.isDue(this.#writes > 0)
    this.#writes += 1
    try {
      const command = isAsked ? flushingCommand : undefined
      const [reply, flushed] = await this.#opened.link.stepThen(command, step, this.#seen, this.#opened.now(), ...args)
      if (isAsked) this.#opened.flushing.learn(flushed)
      return reply
    } finally {
      this.#writes -= 1
    }
  }

  get #seen(): string {
    return seenText(this.#opened.state)
  }

  /** Notes a position that Redis answered with. Another hub may have opened its branch. */
  async #met(position: Position, epoch: string): Promise<void> {
    await this.#follow(epoch)
    this.#opened.state.see(position)
  }

  /** Goes over to the branch of an answer. Rejects an answer of an earlier branch: other events may have its positions by now. */
  async #follow(epoch: string): Promise<void> {
    if (epoch === this.#opened.state.epoch) return
    await this.#refresh()
    if (epoch !== this.#opened.state.epoch) throw unavailable('its log has gone on on another branch meanwhile')
  }

  async #refresh(): Promise<void> {
    this.#opened.state.adopt(parseStoredHistory((await this.#opened.link.step('history', '', '')) as string[]))
  }

  #assertOpen(): void {
    if (this.#closed) throw closedError()
  }
}

// At 20,000 publishes a second, these take half a second. A later publisher is better rejected at once.
const mostWaiting = 10_000
// Few tokens are kept, because the garbage collector moves such young objects. A thousand of them kept the publishes of a tenth
// of a second in memory.
const tokensKept = 256
// This many take some 20 ms, in which Redis answers nobody else.
const mostListed = 5000

/** Posts an order, if one is given, and reads the orders that this hub has not carried out yet. */
export async function exchangeOrders(ask: Ask, call: OrdersCall): Promise<OrdersPage> {
  const { after, forMs, order = '', until, reached = '' } = call
  const reply = await ask('orders', after, String(forMs), order, until === undefined ? '' : String(until), reached)
  const [posted = '', nodes, confirmed, ...entries] = reply as string[]
  if (posted === 'full') {
    throw new RejoinError('The log has no capacity for more revocations. Sign with a new key instead.', {
      code: 'overloaded',
    })
  }
  const orders: { id: string; order: string }[] = []
  for (let index = 0; index + 1 < entries.length; index += 2) {
    orders.push({ id: entries[index] as string, order: entries[index + 1] as string })
  }
  return { posted, orders, nodes: Number(nodes), confirmed: Number(confirmed) }
}
