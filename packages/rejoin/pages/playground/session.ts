import { connect, type EventStream } from '@rejoin/client'
import { createStore, type Store } from '../shared/store.ts'
import { createLane, type Lane } from './lane.ts'
import { createWire, type Wire } from './wire.ts'

/** The work of one tab: it publishes numbers, reads them over two streams, and orders troubles for both. */
export interface Session extends Store<SessionView> {
  readonly channel: string
  readonly plain: Lane
  readonly rejoin: Lane
  readonly wire: Wire
  cut(ms: number): void
  /** Keeps both streams away until the events that they miss are no longer held. */
  stayAway(): void
  /** Lets the server end both streams in order, as a deployment does. */
  restart(): void
  setSlow(isSlow: boolean): void
  publishOwn(text: string): Promise<boolean>
}

export interface SessionView {
  readonly story: string
  /** The trouble that is under way. */
  readonly trouble: Trouble | null
  readonly isSlow: boolean
  /** Events of the user that the Rejoin lane has got, newest first. */
  readonly own: readonly OwnEvent[]
  /** The first id; later, the cursor with which Rejoin returned last. */
  readonly cursor: string | null
}

export interface Trouble {
  readonly name: 'cut' | 'away' | 'restart'
  readonly ms: number
  /** When the connections work again. */
  readonly until: number
}

export interface OwnEvent {
  readonly id: string
  readonly text: string
}

type TextStream = EventStream<Record<string, string>>

const publishEveryMs = 500
const slowMs = 1000
const awayMs = 4000

/** @param tab - the name of the tab: each has its own channel and connections, so that tabs neither mix nor cut each other */
export function startSession(tab: string): Session {
  const channel = `playground/${tab}`
  const plain = createLane()
  const rejoin = createLane()
  const wire = createWire()
  const store = createStore<SessionView>({ story: 'Connecting…', trouble: null, isSlow: false, own: [], cursor: null })

  let plainStream: EventSource | undefined
  let rejoinStream: TextStream | undefined
  let cursor: string | null = null
  let sent = 0
  let publishing = false
  let isDown = false
  let quicken: (() => void) | undefined
  /** The hub's announcement of the latest gap, in words. */
  let gap = ''
  /** The counts before the trouble that is under way. */
  let before: { plainMissing: number; replayed: number; announced: number } | undefined

  const change = (part: Partial<SessionView>) => store.set({ ...store.getSnapshot(), ...part })
  const tell = (story: string) => change({ story })

  if (!document.hidden) open()
  document.addEventListener('visibilitychange', () => (document.hidden ? pause() : open()))
  setInterval(() => void publish(), publishEveryMs)
  setInterval(look, 100)

  function open(): void {
    openPlain()
    openRejoin()
  }

  /**
   * Closes the connections of a hidden tab: a browser opens six to a host, and forgotten tabs would use them up. A hidden tab
   * publishes nothing either, so nothing is lost meanwhile.
   */
  function pause(): void {
    cursor = rejoinStream?.cursor ?? cursor
    plainStream?.close()
    rejoinStream?.close()
    plain.away('paused')
    rejoin.away('paused')
  }

  function openPlain(): void {
    plainStream = new EventSource(`/playground/plain?tab=${tab}`)
    plainStream.onopen = () => {
      plain.connected()
      void publish()
    }
    plainStream.onmessage = ({ data }) => plain.receive(Number(data))
    plainStream.onerror = () => plain.away('reconnecting')
  }

  function openRejoin(): void {
    // The plain stream is told `retry: 1000`. The same wait here makes the lanes differ in one thing only.
    const options = { from: cursor, maxRetryMs: 1000, parse: 'text' as const, fetch: wire.fetch, keep: 0 }
    const stream = connect<Record<string, string>>(`/events/${channel}?tab=${tab}`, options)
    rejoinStream = stream
    stream.onSync(({ reason, snapshot }) => {
      rejoin.announced(sent)
      gap = `sync-required, reason “${reason}”, ${snapshot ? `with the snapshot ${JSON.stringify(snapshot)}` : 'without a snapshot'}`
      tell(`Rejoin was told that something is gone: ${gap}.`)
    })
    stream.onDuplicate(() => rejoin.duplicate())
    stream.onState(({ state, nextRetryAt, closeReason }) => {
      if (state === 'connected') {
        rejoin.connected()
        if (wire.cursor) change({ cursor: wire.cursor })
        void publish()
      } else if (state !== 'closed') rejoin.away('connecting', nextRetryAt)
      else if (closeReason !== 'closed') rejoin.away(closeReason ?? 'closed')
    })
    void read(stream)
  }

  /** Reads at the pace of the loop. Events that the loop has not asked for wait in the hub, and none is dropped. */
  async function read(stream: TextStream): Promise<void> {
    for await (const { id, type, data } of stream) {
      if (store.getSnapshot().isSlow) await pauseForSlow()
      if (type === 'number') rejoin.receive(Number(data))
      else if (type === 'own') change({ own: [{ id, text: data }, ...store.getSnapshot().own].slice(0, 5) })
      if (!store.getSnapshot().cursor) change({ cursor: id })
    }
  }

  function pauseForSlow(): Promise<void> {
    return new Promise((resolve) => {
      quicken = resolve
      setTimeout(resolve, slowMs)
    })
  }

  /** Publishes the next number to both streams. Does nothing while the number before is under way, which it could overtake. */
  async function publish(): Promise<void> {
    const begun = sent > 0 || (plain.isConnected && rejoin.isConnected)
    if (document.hidden || publishing || !begun) return
    publishing = true
    sent += 1
    const number = sent
    // The plain stream first: its request also sets the state on the server, which has to be there before Rejoin's event.
    const isSent = await send(plain, number, `/playground/plain?tab=${tab}&n=${number}`)
    const isPublished = await send(rejoin, number, `/publish/${channel}?type=number`)
    publishing = false
    if (number === 1) tell('Both are connected. Cut them and watch what becomes of the numbers.')
    tellWhetherUp(isSent && isPublished)
  }

  function tellWhetherUp(isUp: boolean): void {
    if (isUp && isDown) tell('The server answers again, and Rejoin goes on where it was.')
    if (!isUp && !isDown) tell('The server does not answer, so nothing is published meanwhile.')
    isDown = !isUp
  }

  async function send(lane: Lane, number: number, url: string): Promise<boolean> {
    lane.sending(number)
    const isSent = await post(url, String(number))
    if (!isSent) lane.unsent(number)
    return isSent
  }

  async function begin(trouble: Trouble, story: string): Promise<void> {
    const [plainCounts, rejoinCounts] = [plain.getSnapshot().counts, rejoin.getSnapshot().counts]
    const { replayed, announced } = rejoinCounts
    before = { plainMissing: plainCounts.missing, replayed, announced }
    change({ trouble, story })
    const path = trouble.name === 'restart' ? `restart?tab=${tab}` : `cut?tab=${tab}&ms=${trouble.ms}`
    if (await post(`/playground/${path}`)) return
    before = undefined
    change({ trouble: null, story: 'The server does not answer.' })
  }

  /** Cuts first: a reader that is connected when its channel is invalidated has missed nothing before. */
  async function stayAway(): Promise<void> {
    await begin(
      { name: 'away', ms: awayMs, until: Date.now() + awayMs },
      'Both are away, and what they miss is let go of at once: nobody would wait until it is a day old.',
    )
    if (store.getSnapshot().trouble && !(await post(`/playground/forget?tab=${tab}`)))
      tell('The server does not answer.')
  }

  /** Tells the outcome of a trouble once both lanes are up to date. */
  function look(): void {
    const { trouble } = store.getSnapshot()
    if (!trouble || !before || Date.now() < trouble.until) return
    const { isSlow } = store.getSnapshot()
    // A slow reader is always behind the published numbers, so it only has to be connected.
    if (!isCurrent(plain) || !(isSlow ? rejoin.isConnected : isCurrent(rejoin))) return
    const { counts } = rejoin.getSnapshot()
    const lost = plain.getSnapshot().counts.missing - before.plainMissing
    const replayed = counts.replayed - before.replayed
    const announced = counts.announced - before.announced
    before = undefined
    const behind = `is slow, and gets all ${sent - rejoin.highest} that wait for it at its own pace`
    const caughtUp = isSlow ? behind : `was sent the ${replayed} it had missed`
    const rest = announced > 0 ? `was told first: ${gap}` : caughtUp
    const story = `Plain SSE has lost ${lost} for good, and nothing told it so. Rejoin ${rest}; ${counts.missing} are missing.`
    change({ trouble: null, story })
  }

  function isCurrent(lane: Lane): boolean {
    return lane.isConnected && lane.highest >= sent
  }

  return {
    channel,
    plain,
    rejoin,
    wire,
    subscribe: store.subscribe,
    getSnapshot: store.getSnapshot,
    cut(ms) {
      const trouble: Trouble = { name: 'cut', ms, until: Date.now() + ms }
      if (!store.getSnapshot().trouble)
        void begin(trouble, 'Both lines are cut. The numbers are published all the same.')
    },
    stayAway() {
      if (!store.getSnapshot().trouble) void stayAway()
    },
    restart() {
      const trouble: Trouble = { name: 'restart', ms: 0, until: Date.now() }
      if (!store.getSnapshot().trouble)
        void begin(trouble, 'The server has ended both streams, as it does before a deployment.')
    },
    setSlow(isSlow) {
      change({
        isSlow,
        story: isSlow
          ? 'Rejoin reads one event a second, and two are published. What it has not read waits in the log of the hub.'
          : 'Rejoin reads as fast as it can again, and gets all that has waited.',
      })
      quicken?.()
    },
    publishOwn: (text) => post(`/publish/${channel}?type=own`, text),
  }
}

async function post(url: string, body = ''): Promise<boolean> {
  try {
    return (await fetch(url, { method: 'POST', body })).ok
  } catch {
    // The server is gone. For the caller this is the same as a rejection.
    return false
  }
}
