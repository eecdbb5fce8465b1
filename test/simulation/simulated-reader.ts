import type { EventStream } from '@rejoin/client'
import type { Start } from '@rejoin/hub/internal'
import { readFrames } from './frames.ts'
import type { Receipts, Wanted } from './judge.ts'
import type { Stage } from './simulate.ts'
import type { Breakable, Connection } from './simulated-connection.ts'
import { beginning } from './simulated-machine.ts'
import type { SimulatedNode, Visit } from './simulated-node.ts'
import { createPollConnection } from './simulated-poll-connection.ts'
import { type Entry, isAmong } from './truth.ts'

/** A person with a page open: the whole client, on virtual time and virtual connections. */
export interface SimulatedReader {
  readonly name: string
  readonly wanted: Wanted
  readonly connection: Breakable | undefined
  /** Whether there is nothing that it is owed. */
  readonly caughtUp: boolean
  /** Once all faults are over: accuses whoever owes it something, or gave it what is not so. */
  judge(): void
  /** Opens the page, or opens it again where it was. */
  open(): void
  close(): void
}

export interface ReaderOptions {
  readonly name: string
  readonly wanted: Wanted
  /** Where it starts: at an id that it has from somewhere, or as a new reader does. */
  readonly from: string | Exclude<Start['from'], 'cursor'>
  /** A proxy on its way takes the header with the cursor away. */
  readonly isStripped: boolean
  /** How long it takes to reload after a gap; 0 for a handler that returns at once. */
  readonly reloadMs: number
  /** It asks for answers, and holds no stream. */
  readonly polls: boolean
}

export function createReader(
  stage: Stage,
  { name, wanted, from, isStripped, reloadMs, polls }: ReaderOptions,
): SimulatedReader {
  const { world, truth, judge } = stage
  const { chance } = world
  const clockError = chance.between(-5_000, 5_000)
  const receipts: Receipts = judge.follow(name, wanted)
  const fresh = from === 'now' || from === 'earliest' || from === 'last' ? from : undefined
  let cursor = fresh === undefined ? from : null
  let stream: EventStream | undefined
  let connection: Breakable | undefined
  let lastNode: SimulatedNode | undefined
  /** Where the last fresh stream said that it starts. It counts once the client has acted on it. */
  let greeting: Entry | undefined
  countKind()

  function countKind(): void {
    const { names, showsChannel } = wanted
    if (names.some((each) => each.endsWith('*'))) stage.count('reader of a pattern')
    const others = (each: string) => names.filter((other) => other !== each)
    if (names.some((each) => isAmong(others(each), each))) stage.count('reader of overlapping names')
    if (showsChannel) stage.count('reader that is shown channels')
    if (polls) stage.count('reader that polls')
  }

  function open(): void {
    if (cursor === null) forget()
    stream = stage.parts.connect('http://simulated/events', {
      from: cursor,
      retryMs: 200,
      maxRetryMs: 3_000,
      transports: [polls ? 'long-poll' : 'fetch'],
      fetch: request as unknown as typeof fetch,
      clock: {
        now: () => Math.floor(beginning + world.now + clockError),
        random: chance.number,
        setTimeout: (callback, ms) => world.after(ms, callback),
        clearTimeout: (cancel) => (cancel as (() => void) | undefined)?.(),
      },
    })
    stream.on('*', (event) => {
      begin()
      stage.note(name, 'got', event.id)
      const entry = truth.entry(event.id)
      if (entry) receipts.event(entry)
    })
    stream.onSync((gap) => {
      stage.note(name, 'told', gap.reason, gap.requested, gap.latest)
      const entry = truth.entry(gap.latest)
      if (entry) receipts.gap(entry, gap.retained)
      return reloadMs > 0 ? new Promise<void>((resolve) => void world.after(reloadMs, resolve)) : undefined
    })
    stream.onState(({ closeReason }) => {
      if (closeReason === 'finished') world.after(chance.between(200, 3_000), openAgain)
    })
  }

  /** A page that was left before it had a cursor, perhaps while it reloaded after a gap, comes back as a new reader. */
  function forget(): void {
    greeting = undefined
    receipts.forget()
  }

  /** The page of something that is over is opened again all the same, and it may turn out not to be over. */
  function openAgain(): void {
    if (stage.isQuiet || !isFinished()) return
    stage.count('back after the end')
    close()
    open()
  }

  function close(): void {
    cursor = stream?.cursor ?? cursor
    stream?.close()
  }

  function hasAll(): boolean {
    if (stream?.cursor) begin()
    return receipts.entry !== undefined && !receipts.isStranded && receipts.missing().length === 0
  }

  /** Whether it was right to be sent away was judged when it happened. */
  function isFinished(): boolean {
    return stream?.state.closeReason === 'finished'
  }

  function begin(): void {
    if (greeting && !receipts.entry) receipts.start(greeting)
  }

  async function request(url: URL, { headers, signal }: { headers: Headers; signal: AbortSignal }): Promise<unknown> {
    const inHeader = isStripped ? null : headers.get('last-event-id')
    if (isStripped && headers.has('last-event-id')) stage.count('stripped header')
    const requested = inHeader ?? url.searchParams.get('lastEventId')
    if (stream?.cursor) begin()
    const node = chance.pick(stage.nodes)
    await travel()
    if (signal.aborted || !node.accepts) throw new Error('rejected')
    if (stage.revoked.has(name)) return answer(403)
    await new Promise<void>((resolve) => node.machine.run(resolve))
    if (signal.aborted || !node.accepts) throw new Error('rejected')
    if (lastNode && lastNode !== node) stage.count('reconnect to another node')
    lastNode = node
    stage.note(name, 'asks', node.name, requested)
    const visit = await node.accept({ name, wanted }, startOf(requested))
    if (signal.aborted) throw new Error('aborted')
    if (!visit) {
      await travel()
      return answer(204)
    }
    if (polls) return poll(visit, Number(url.searchParams.get('waitMs')), signal)
    const opened = visit.stream()
    connection = opened
    signal.addEventListener('abort', () => opened.leave())
    await travel()
    return answer(200, opened)
  }

  async function poll(visit: Visit, waitMs: number, signal: AbortSignal): Promise<unknown> {
    const exchange = createPollConnection(world, stage.scenario.connectionLatencyMs, signal, () =>
      stage.count('poll cut'),
    )
    connection = exchange
    const given = await exchange.carry(visit.poll(exchange, waitMs, exchange.gone))
    if (!('events' in given)) return answer(503)
    const hello = given.events.find(({ type }) => type === 'hello')
    if (hello?.id && !receipts.entry) greeting = truth.entry(hello.id)
    const pieces = [Buffer.from(JSON.stringify(given))]
    const reader = {
      async read() {
        const value = pieces.pop()
        return { done: value === undefined, value }
      },
      cancel: async () => undefined,
    }
    const headers = new Headers({ 'content-type': 'application/json' })
    return { status: 200, headers, body: { getReader: () => reader } }
  }

  function startOf(requested: string | null): Start {
    if (requested !== null) return { from: 'cursor', cursor: requested }
    return fresh === 'last' ? { from: 'last', events: 3 } : { from: fresh ?? 'now' }
  }

  function travel(): Promise<void> {
    return new Promise((resolve) => void world.after(chance.between(0, stage.scenario.connectionLatencyMs), resolve))
  }

  function answer(status: number, opened?: Connection) {
    tapped = ''
    const reader = opened && {
      async read() {
        const value = await opened.read()
        if (value && !receipts.entry) tap(value)
        return value ? { done: false, value } : { done: true, value: undefined }
      },
      cancel: async () => opened.leave(),
    }
    return {
      status,
      headers: new Headers({ 'content-type': 'text/event-stream' }),
      body: reader ? { getReader: () => reader } : null,
    }
  }

  let tapped = ''

  /** Reads along until the reader has its first entry, which only the client's `hello` tells. */
  function tap(bytes: Uint8Array): void {
    tapped += Buffer.from(bytes).toString('latin1')
    const end = tapped.lastIndexOf('\n\n')
    if (end < 0) return
    for (const { type, id } of readFrames(tapped.slice(0, end + 2)) ?? []) {
      if (type === 'hello' && id !== undefined) greeting = truth.entry(id)
    }
    tapped = tapped.slice(end + 2)
  }

  return {
    name,
    wanted,
    get connection() {
      return connection
    },
    get caughtUp() {
      return isFinished() || (hasAll() && !receipts.hasEnds)
    },
    judge() {
      const { entry } = receipts
      const whereabouts = `${name} (${stream?.state.state}) is at ${entry?.name ?? entry?.id}`
      if (isFinished()) return
      if (!hasAll())
        stage.judge.accuse('lost-write', `${whereabouts} and lacks ${receipts.missing().map((each) => each.name)}`)
      else if (receipts.hasEnds) stage.judge.accuse('never-finished', whereabouts)
      receipts.checkState()
    },
    open,
    close,
  }
}
