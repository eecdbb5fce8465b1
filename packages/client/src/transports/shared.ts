import type { Hello } from '@rejoin/protocol'
import { invalidOption } from '../address.ts'
import type { OpenRequest } from '../connection.ts'
import { slackMs } from '../connection-limits.ts'
import { report } from '../handler-set.ts'
import { nextTask } from '../next-task.ts'
import type { ConnectOptions } from '../options.ts'
import { isHello, readObject } from '../receiver.ts'
import type { Block, Sink, Transport } from './transport.ts'

/**
 * Lets the tabs of a browser read through one connection. It wraps a transport, so that each tab keeps its own machine,
 * cursor and handlers.
 *
 * All tabs ask for one Web Lock. The tab that holds the lock *leads*: it reads from the hub and passes every block on
 * over a `BroadcastChannel`. When the leading tab is gone, for whatever reason, the browser gives the lock to another
 * tab, which reads on from its own cursor.
 *
 * A tab *follows* only when it cannot miss anything: the leader is at an id that the tab has, or the tab has no cursor
 * yet. Otherwise the tab reads for itself until it has an id that the leader has passed on meanwhile. From that id on,
 * both see the same.
 *
 * A leader that cannot go on gives up leading: its handlers have not kept up, so it has stopped reading, or they leave it
 * no time to read. A leader that does not answer at all, as in a tab that hangs, loses the lock to a tab that has asked.
 * Who leads is a matter of connections alone: ids keep the events in order, even while two tabs believe that they lead.
 *
 * @returns undefined where tabs cannot share; each tab then reads for itself
 */
export function createSharing(options: ConnectOptions, address: URL): ((own: Transport) => Transport) | undefined {
  const { shareAcrossTabs: name, identity } = options
  if (name === true && !identity && mayCarryCredentials(options, address)) {
    report(invalidOption("shareAcrossTabs is true, but who reads is not known. Give identity, or credentials: 'omit'."))
    return
  }
  const { locks } = globalThis.navigator ?? {}
  // Pages without HTTPS have no locks, and servers have no tabs.
  if (!locks || !globalThis.BroadcastChannel) return
  const key = `rejoin:${JSON.stringify([name, identity])} ${address}`
  return (own) => (request, sink, signal) => share(own, request, sink, signal, key, locks)
}

/**
 * Whether requests may carry credentials. A page cannot see whose they are: cookies are hidden from it, and a function
 * may return another user's token tomorrow. An `EventSource` always sends the cookies of its own origin.
 */
function mayCarryCredentials(
  { token, headers, fetch, credentials, transports }: ConnectOptions,
  { origin }: URL,
): boolean {
  const isHere = origin === globalThis.location?.origin
  const sendsCookies =
    credentials === 'include' || (isHere && (credentials !== 'omit' || transports?.includes('event-source')))
  return Boolean(token || headers || fetch || sendsCookies)
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
  let channel: BroadcastChannel
  try {
    channel = new BroadcastChannel(key)
  } catch {
    // Denied to this page, as in a sandboxed frame.
    return own(request, sink, signal)
  }
  const ended = deferred<void>()
  const deliver = createDelivery(sink, ended.resolve)
  // The last id of this tab, and the ids before it. When a leader starts at one of these ids, it repeats some events,
  // which the machine drops, and skips none.
  let cursor = request.cursor
  const recent = [cursor]
  let isLeading = false
  let hasLeft = false
  // Takes this tab out of the queue for the lock, and gives the lock back.
  let leaveQueue = (): void => undefined
  // The handlers of this tab have not kept up, and reading waits for them.
  let isFull = false
  const isSlow = createSlowness()
  // When a leader last gave a sign of life, and when this tab last asked for one.
  let heardAt = performance.now()
  let askedAt = 0
  let isLate = false
  let isClaiming = false
  const claimed = () => {
    isClaiming = false
  }
  // The tab that this tab follows.
  let leader: number | undefined
  // The connection of this tab, while it reads for itself or for all tabs.
  let reading: AbortController | undefined
  // The blocks that a leader has passed on while this tab reads for itself, the newest last.
  let overheard: readonly [from: number, block: Block][] = []
  // The `hello` of the hub on this tab's own connection, and whether the machine has got a `hello`.
  let hello: Partial<Hello> | undefined
  let isGreeted = false
  let retryMs = 0
  let bytesAt = 0
  let saidAliveAt = 0

  const leave = () => ended.resolve()
  signal.addEventListener('abort', leave)
  // A frozen tab cannot lead, but would keep the lock.
  globalThis.document?.addEventListener('freeze', leave)
  channel.onmessage = ({ data }: MessageEvent<Message>) => hear(data)
  const unanswered = setTimeout(() => leader ?? read(), answerWithinMs)
  const watch = setInterval(look, lookEveryMs)
  queue()
  say({ ask: true })
  try {
    await ended.promise
  } finally {
    signal.removeEventListener('abort', leave)
    globalThis.document?.removeEventListener('freeze', leave)
    clearTimeout(unanswered)
    clearInterval(watch)
    hasLeft = true
    reading?.abort()
    leaveQueue()
    channel.close()
  }

  /** Waits for the lock, or takes it from the tab that has it. */
  function queue(steal?: true): void {
    leaveQueue()
    const waiting = new AbortController()
    const freed = deferred<void>()
    leaveQueue = () => {
      isLeading = false
      waiting.abort()
      freed.resolve()
    }
    // A request that steals cannot be aborted.
    locks
      .request(key, steal ? { steal } : { signal: waiting.signal }, () => {
        if (waiting.signal.aborted) return
        isLeading = true
        say({ leads: true })
        if (reading) announce()
        else read()
        return freed.promise
      })
      .catch(() => {
        // This tab left before it got the lock, or may have none.
        if (waiting.signal.aborted || !isLeading) return
        // Another tab took the lock, because this tab did not answer. It goes on reading for itself, until it can follow.
        queue()
        say({ ask: true })
      })
  }

  /** A leader that has given no sign of life since it was asked for one hangs, and must not keep the others waiting. */
  function look(): void {
    if (isLeading) return
    if (askedAt > heardAt) {
      // A tab that reads for itself is late only when its own connection is.
      isLate = !reading
      if (isLate) sink.tell({ type: 'late' })
      if (isClaiming) return
      isClaiming = true
      // One tab at a time, until the others have heard of it. Otherwise each would open a connection.
      const claim = async (lock: unknown) => {
        if (!lock || hasLeft) return
        queue(true)
        await new Promise((resolve) => setTimeout(resolve, lookEveryMs))
      }
      // Where locks are denied, every tab reads for itself.
      locks.request(`${key} next`, { ifAvailable: true }, claim).then(claimed, claimed)
    } else if (performance.now() - heardAt > lookEveryMs) {
      askedAt = performance.now()
      say({ ask: true })
    }
  }

  function hear({ from, ask, leads, at, hello: greeting, retryMs: ms = 0, block }: Message): void {
    // The leader ignores blocks of the tab that led before: it reads them again from the hub.
    if (isLeading) {
      if (ask) answer()
      return
    }
    if (ask) return
    heardAt = performance.now()
    if (greeting) meet(from, at!, greeting, ms)
    else if (block && reading) overhear(from, block)
    else if (from === leader && !leads) {
      sink.tell({ type: 'bytes' })
      if (block) void take(block)
    }
  }

  function answer(): void {
    if (isFull) queue()
    else if (!announce()) say({ leads: true })
  }

  /** A leader has told its last id. */
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
    if (isLate) sink.tell({ type: 'bytes' })
    isLate = false
    if (isGreeted) return
    isGreeted = true
    sink.tell({ type: 'answered', status: 200, isStream: true, retryAfterMs: 0 })
    sink.tell({ type: 'retry', ms })
    // Only the leader renews its credentials.
    const told = { ...greeting, expiresInMs: undefined, requested: cursor, resumed: cursor !== null }
    void take({ type: 'hello', id: at ?? '', data: JSON.stringify(told) })
  }

  function overhear(from: number, block: Block): void {
    overheard = [...overheard.filter(([other]) => other === from).slice(-maxHeld), [from, block]]
    follow()
  }

  /** The tab stops reading for itself once the leader has passed on the last id that the tab has read. */
  function follow(): void {
    const at = overheard.findLastIndex(([, { id }]) => id === cursor)
    if (isLeading || isFull || !isGreeted || at < 0) return
    reading?.abort()
    reading = undefined
    leader = overheard[at]![0]
    for (const [, block] of overheard.slice(at + 1)) void take(block)
    overheard = []
  }

  /** Reads from the hub, from the cursor of this tab. */
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
      if (told.type === 'bytes') {
        bytesAt = performance.now()
        if (isLeading && bytesAt - saidAliveAt > 1000) say({})
      }
      sink.tell(told)
    }
    const receive: Sink['receive'] = (block) => {
      if (signal.aborted) return
      const told = block.type === 'hello' && readObject(block.data!)
      if (told && isHello(told)) return greeted(block, told, sent)
      if (isLeading) say({ block })
      const startedAt = performance.now()
      const full = take(block)
      if (full) pause(full)
      const givesUp = !full && isSlow(startedAt) && isLeading
      if (givesUp) queue()
      follow()
      // The browser takes the lock back between two tasks. The rest of a chunk may take seconds.
      return givesUp ? nextTask() : full
    }
    own({ ...request, cursor }, { tell, receive }, signal)
      .then(() => deliver.settled())
      .then(
        () => signal.aborted || ended.resolve(),
        (error) => signal.aborted || ended.reject(error),
      )
  }

  function greeted(block: Block, told: Partial<Hello>, sent: string | null): Promise<void> | undefined {
    hello = told
    // The machine gets one `hello` for each connection that it asked for. When it already has its `hello`, and the hub did not
    // see the cursor here, this connection ends: the machine deals with that on the next one.
    const full = isGreeted ? undefined : take(block)
    if (isGreeted && hello.requested !== sent) ended.resolve()
    isGreeted = true
    announce()
    follow()
    // On a quiet channel, nothing else would tell the leader's last id.
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

  /** Reading waits for the handlers of this tab. Other tabs must not wait for them: the next in the queue leads. */
  function pause(until: Promise<void>): void {
    isFull = true
    void until.then(() => {
      isFull = false
    })
    if (isLeading) queue()
  }

  /** @returns false when following this tab would be no better than waiting: it does not read, or its hub is silent */
  function announce(): boolean {
    const dueMs = (hello?.heartbeatMs || Infinity) + slackMs
    if (!isLeading || isFull || !hello || performance.now() - bytesAt > dueMs) return false
    say({ at: cursor, hello, retryMs })
    return true
  }

  function say(message: Omit<Message, 'from'>): void {
    saidAliveAt = performance.now()
    channel.postMessage({ from: me, ...message } satisfies Message)
  }
}

/** A message between tabs. A message with nothing but `from` says that the hub has given a sign of life. */
interface Message {
  readonly from: number
  /** Asks who leads, and at which id. */
  readonly ask?: boolean
  /** The sender leads, but has nothing to follow yet. */
  readonly leads?: boolean
  /** The leader's answer, also sent when it starts to lead: its last id, and the `hello` of the hub. */
  readonly at?: string | null
  readonly hello?: Partial<Hello>
  readonly retryMs?: number
  /** A block that the leader has read. */
  readonly block?: Block
}

/**
 * How long a tab waits for a leader, in ms. A leader that does not answer is busy or still connects, and the tab would
 * stay empty.
 */
const answerWithinMs = 1000

/**
 * How often a tab looks whether its leader is alive, in ms. It asks at one look and acts at the next, so that a machine
 * that was asleep does not take all leaders for dead.
 */
const lookEveryMs = 2000

/** Blocks that are held for a slow handler or for a leader. With more, a tab reads again from the hub. */
const maxHeld = 1000

/**
 * Finds out whether the handlers of a tab take nearly all of its time: more events may then arrive than the tab can read
 * and pass on. True at most once a minute. When all tabs are as slow, the lead must not go round for ever.
 */
function createSlowness(): (startedAt: number) => boolean {
  let since = performance.now()
  let busyMs = 0
  let foundAt = -Infinity
  return (startedAt) => {
    const now = performance.now()
    busyMs += now - startedAt
    if (now - since < lookEveryMs) return false
    const isSlow = busyMs > 0.8 * (now - since) && now - foundAt > 60_000
    if (isSlow) foundAt = now
    since = now
    busyMs = 0
    return isSlow
  }
}

/**
 * Gives blocks to a sink one after the other. Holds some blocks, so that a slow handler of this tab does not make the
 * other tabs wait.
 *
 * @param overflow - called when the caller goes on although too many blocks are held
 * @returns a promise that the next block should wait for
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
