import type { Hello } from '@rejoin/protocol'
import { invalidOption } from '../address.ts'
import type { OpenRequest } from '../connection.ts'
import { report } from '../handler-set.ts'
import type { ConnectOptions } from '../options.ts'
import type { Block, Sink, Transport } from './transport.ts'

/**
 * Lets the tabs of a browser read through one connection. It stands in front of a transport, so that each tab keeps its own
 * machine, cursor and handlers.
 *
 * All tabs ask for one Web Lock. The tab that holds the lock *leads*: it reads from the hub and passes every block on over a
 * `BroadcastChannel`. The browser gives the lock to another tab when the leading one is gone, however it went, and that tab
 * reads on from its own cursor.
 *
 * A tab *follows* only when nothing can be missing in between: the leader is at an id that the tab has, or the tab has no
 * cursor yet. Otherwise the tab reads for itself until it has an id that the leader has passed on meanwhile. From there on,
 * both see the same.
 *
 * @returns undefined where tabs cannot share: each reads for itself then
 */
export function createSharing(
  { shareAcrossTabs: name, token, headers }: ConnectOptions,
  address: URL,
): ((own: Transport) => Transport) | undefined {
  if (name === true && (token ?? headers)) {
    report(invalidOption('shareAcrossTabs is true with a token. Give the id of the user.'))
    return
  }
  const { locks } = globalThis.navigator ?? {}
  // Pages without HTTPS have no locks, and servers have no tabs.
  if (!locks || !globalThis.BroadcastChannel) return
  const key = `rejoin:${name} ${address}`
  return (own) => (request, sink, signal) => share(own, request, sink, signal, key, locks)
}

async function share(
  own: Transport,
  request: OpenRequest,
  sink: Sink,
  signal: AbortSignal,
  key: string,
  locks: LockManager,
): Promise<void> {
  const me = Math.random()
  const channel = new BroadcastChannel(key)
  const leaving = new AbortController()
  const ended = deferred<void>()
  const freed = deferred<void>()
  const deliver = createDelivery(sink, ended.resolve)
  // The last id that this tab was given, and the last ones before it. A leader that starts at one of these repeats some
  // events, which the machine drops, and skips none.
  let cursor = request.cursor
  const recent = [cursor]
  let isLeading = false
  // Whom this tab follows.
  let leader: number | undefined
  // The connection of this tab, while it reads for itself or for all.
  let reading: AbortController | undefined
  // What a leader passed on meanwhile, the newest last.
  let overheard: readonly [from: number, block: Block][] = []
  // What the hub said when it greeted this connection or the leader's, and whether the machine has heard it.
  let hello: Partial<Hello> | undefined
  let isGreeted = false
  let retryMs = 0
  let saidAliveAt = 0

  const leave = () => ended.resolve()
  signal.addEventListener('abort', leave)
  // Frozen, a tab cannot lead, and would hold the lock.
  globalThis.document?.addEventListener('freeze', leave)
  channel.onmessage = ({ data }: MessageEvent<Message>) => hear(data)
  const unanswered = setTimeout(() => leader ?? read(), answerWithinMs)
  locks
    .request(key, { signal: leaving.signal }, () => {
      isLeading = true
      if (reading) announce()
      else read()
      return freed.promise
    })
    // Left before it was its turn.
    .catch(() => undefined)
  say({ ask: true })
  try {
    await ended.promise
  } finally {
    signal.removeEventListener('abort', leave)
    globalThis.document?.removeEventListener('freeze', leave)
    clearTimeout(unanswered)
    reading?.abort()
    leaving.abort()
    freed.resolve()
    channel.close()
  }

  function hear({ from, ask, at, hello: greeting, retryMs: ms = 0, block }: Message): void {
    // What a tab says that led before is read again from the hub.
    if (isLeading) {
      if (ask) announce()
    } else if (greeting) meet(from, at!, greeting, ms)
    else if (block && reading) overhear(from, block)
    else if (from === leader) {
      sink.tell({ type: 'bytes' })
      if (block) void take(block)
    }
  }

  /** A leader has said where it is. */
  function meet(from: number, at: string | null, greeting: Partial<Hello>, ms: number): void {
    const isFresh = cursor === null && !isGreeted
    if (!reading && (isFresh || recent.includes(at))) {
      attach(from, at, greeting, ms)
      return
    }
    read()
    overhear(from, { id: at ?? '' })
  }

  function attach(from: number, at: string | null, greeting: Partial<Hello>, ms: number): void {
    leader = from
    if (isGreeted) return
    isGreeted = true
    sink.tell({ type: 'answered', status: 200, isStream: true, retryAfterMs: 0 })
    sink.tell({ type: 'retry', ms })
    // When the rights end is the leader's business.
    const told = { ...greeting, expiresInMs: undefined, requested: cursor, resumed: cursor !== null }
    void take({ type: 'hello', id: at ?? '', data: JSON.stringify(told) })
  }

  function overhear(from: number, block: Block): void {
    overheard = [...overheard.filter(([other]) => other === from).slice(-maxHeld), [from, block]]
    follow()
  }

  /** Once the leader has passed on what this tab has read last, the tab need not read any more. */
  function follow(): void {
    const at = overheard.findLastIndex(([, { id }]) => id === cursor)
    if (isLeading || !isGreeted || at < 0) return
    reading?.abort()
    reading = undefined
    leader = overheard[at]![0]
    for (const [, block] of overheard.slice(at + 1)) void take(block)
    overheard = []
  }

  /** Reads from the hub, from where this tab is. */
  function read(): void {
    if (reading) return
    leader = undefined
    const controller = new AbortController()
    reading = controller
    const { signal } = controller
    const sent = cursor
    const tell: Sink['tell'] = (told) => {
      if (signal.aborted) return
      if (told.type === 'retry') retryMs = told.ms
      if (told.type === 'bytes' && isLeading && Date.now() - saidAliveAt > 1000) say({})
      sink.tell(told)
    }
    const receive: Sink['receive'] = (block) => {
      if (signal.aborted) return
      if (block.type === 'hello') return greeted(block, sent)
      if (isLeading) say({ block })
      const full = take(block)
      follow()
      return full
    }
    own({ ...request, cursor }, { tell, receive }, signal)
      .then(() => deliver.settled())
      .then(
        () => signal.aborted || ended.resolve(),
        (error) => signal.aborted || ended.reject(error),
      )
  }

  function greeted(block: Block, sent: string | null): Promise<void> | undefined {
    hello = JSON.parse(block.data!) as Partial<Hello>
    // The machine hears of one greeting for each connection that it asked for. Where the cursor did not arrive, it knows
    // what to do, but has to ask for that itself.
    const full = isGreeted ? undefined : take(block)
    if (isGreeted && hello.requested !== sent) ended.resolve()
    isGreeted = true
    announce()
    follow()
    // On a quiet channel nothing else would tell where the leader is.
    if (!isLeading) say({ ask: true })
    return full
  }

  /** Gives a block to the machine of this tab. */
  function take(block: Block): Promise<void> | undefined {
    if (block.id) {
      cursor = block.id
      recent.push(cursor)
      if (recent.length > 2 * maxHeld) recent.splice(0, maxHeld)
    }
    return deliver(block)
  }

  function announce(): void {
    if (isLeading && hello) say({ at: cursor, hello, retryMs })
  }

  function say(message: Omit<Message, 'from'>): void {
    saidAliveAt = Date.now()
    channel.postMessage({ from: me, ...message } satisfies Message)
  }
}

/** What tabs say to each other. A message that says nothing is a sign of life. */
interface Message {
  readonly from: number
  /** Who leads, and where is it? */
  readonly ask?: boolean
  /** The leader's answer, also said when it starts: the last id that it had, and what the hub said in greeting. */
  readonly at?: string | null
  readonly hello?: Partial<Hello>
  readonly retryMs?: number
  /** What the leader has read. */
  readonly block?: Block
}

/** In ms. A leader that does not answer is busy, or still connects: waiting for it would keep this tab empty. */
const answerWithinMs = 1000

/** Blocks that wait for a slow handler, or for a leader; with more, a tab reads again from the hub. */
const maxHeld = 1000

/**
 * Gives blocks to a sink one after the other. A slow handler of this tab must not keep the other tabs waiting, so some blocks
 * are held.
 *
 * @param overflow - called when too many are held, although the caller was told to wait
 * @returns what to wait for before the next block
 */
function createDelivery(sink: Sink, overflow: () => void): Delivery {
  let held = 0
  let tail: Promise<void> | undefined

  function deliver(block: Block): Promise<void> | undefined {
    const wait = tail ? tail.then(() => sink.receive(block)) : sink.receive(block)
    if (!wait) return
    held += 1
    const done = wait.then(() => {
      held -= 1
      if (tail === done) tail = undefined
    })
    tail = done
    if (held > 2 * maxHeld) overflow()
    return held > maxHeld ? done : undefined
  }

  return Object.assign(deliver, { settled: async () => tail })
}

type Delivery = ((block: Block) => Promise<void> | undefined) & { settled(): Promise<void> }

function deferred<Value>(): Deferred<Value> {
  let settle: Omit<Deferred<Value>, 'promise'> | undefined
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...settle! }
}

interface Deferred<Value> {
  readonly promise: Promise<Value>
  resolve(value: Value): void
  reject(error: unknown): void
}
