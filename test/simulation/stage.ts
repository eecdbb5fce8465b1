import { createHub, type Hub, type LogSource } from '@rejoin/hub'
import { type ConnectedReader, createSubscription } from '@rejoin/hub/internal'
import type { Log, TailBatch } from '@rejoin/hub/log'
import { memoryLog } from '@rejoin/hub/memory'
import { createRandom } from '@rejoin/hub/testing'
import { comparePositions, createParser, isAfter, judgeCursor, type Position } from '@rejoin/protocol'

/**
 * A hub under a microscope: nothing moves unless it is told to. Tail batches wait until `deliver`, reads of the log until
 * `read`, the end of a turn until `flush`; one reader may be cut anywhere and comes back with the last id it saw.
 */
export interface Stage {
  readonly hub: Hub
  /** Each returns whether there was anything to do. Where there was nothing, the stage is as before. */
  readonly moves: Record<Move, () => Promise<boolean>>
  /** Lets everything finish, the reader come back, and throws if it lost, repeated or was misled about anything. */
  finishAndCheck(): Promise<void>
  readonly story: readonly string[]
}

export const moves = [
  'append a',
  'append b',
  'trim',
  'connect',
  'cut',
  'tear',
  'stall',
  'drain',
  'read',
  'deliver',
  'flush',
] as const
export type Move = (typeof moves)[number]

export interface StageOptions {
  /** Whether the log looks at its state when it is asked, or only when it answers. Real logs do it anywhere between. */
  readonly reads: 'when asked' | 'when answering'
  /** 1 makes every catch-up go through the log. */
  readonly hotBytes: number
  /** What the reader asks for: the two channels there are, by their names or by a pattern. */
  readonly names: readonly string[]
}

// Shared: a decoder for each write would take an eighth of the time of all stages.
const utf8 = new TextDecoder()

// Two trims away from any event: one makes it older, the second lets go of it.
const maxAgeMs = 1000
const trimStepMs = 600

export async function openStage(options: StageOptions): Promise<Stage> {
  let now = Date.UTC(2026, 0, 1)
  const random = createRandom(1)
  const turnTasks: (() => void)[] = []
  const environment = {
    now: () => now,
    random,
    after: () => () => {},
    heapUsed: () => 0,
    endOfTurn: (task: () => void) => void turnTasks.push(task),
  }
  const gates = createGates(memoryLog({ window: { maxAgeMs } }), options.reads)
  const hub = await createHub({ log: gates.source, environment, hotBytes: options.hotBytes })
  const reader = createReader(hub, gates, options.names)
  const { appended } = gates
  const publishing: Promise<unknown>[] = []
  const story: string[] = []

  async function append(channel: string): Promise<boolean> {
    // Not awaited: it answers only when this hub has the event, and deliveries wait for their own move.
    publishing.push(hub.publish(channel, { data: gates.appended.length + 1 }))
    return true
  }

  async function flush(): Promise<boolean> {
    const tasks = turnTasks.splice(0)
    for (const task of tasks) task()
    return tasks.length > 0
  }

  const actions: Stage['moves'] = {
    'append a': () => append('a'),
    'append b': () => append('b'),
    async trim() {
      if (appended.length === 0) return false
      now += trimStepMs
      return true
    },
    connect: async () => reader.connect(),
    cut: async () => reader.cut(false),
    tear: async () => reader.cut(true),
    stall: async () => reader.stall(),
    drain: async () => reader.drain(),
    read: async () => gates.answerRead(),
    deliver: async () => gates.deliver(),
    flush,
  }
  for (const name of moves) {
    const act = actions[name]
    actions[name] = async () => {
      const moved = await act()
      await settled()
      if (moved) story.push(name)
      return moved
    }
  }

  return {
    hub,
    moves: actions,
    story,
    async finishAndCheck() {
      reader.connect()
      await settled()
      let moving = true
      while (moving) {
        moving = false
        for (const name of ['drain', 'deliver', 'read', 'flush'] as const) moving = (await actions[name]()) || moving
      }
      await Promise.all(publishing)
      await reader.check(appended)
      await hub.close()
    },
  }
}

interface Appended {
  readonly n: number
  readonly position: Position
}

/** Long enough for every chain of promises in the hub; ten times cheaper than a turn of the real loop. */
async function settled(): Promise<void> {
  for (let hop = 0; hop < 40; hop += 1) await undefined
}

interface Gates {
  readonly source: LogSource
  readonly appended: Appended[]
  deliver(): boolean
  answerRead(): boolean
  positionOf(id: string): Position
  /** The newest position any of the channels has let go of, as of now. */
  trimmedThrough(): Promise<Position[]>
}

/** A log whose tail and reads wait behind gates. */
function createGates(inner: LogSource, reads: StageOptions['reads']): Gates {
  let log: Log
  const appended: Appended[] = []
  const batches: (() => void)[] = []
  const answers: (() => void)[] = []
  const source: LogSource = {
    name: inner.name,
    async open(environment) {
      log = await inner.open(environment)
      return {
        ...bound(log),
        async append(...given) {
          const answer = await log.append(...given)
          appended.push(...answer.stamps.map(({ position }, index) => ({ n: Number(given[0][index]?.data), position })))
          return answer
        },
        async read(...question) {
          const early = reads === 'when asked' ? log.read(...question) : undefined
          await new Promise<void>((resolve) => void answers.push(resolve))
          return early ?? log.read(...question)
        },
        tail(after, onBatch) {
          return log.tail(after, (batch: TailBatch) => void batches.push(() => onBatch(batch)))
        },
      }
    },
  }
  const pop = (waiting: (() => void)[]) => {
    const next = waiting.shift()
    next?.()
    return next !== undefined
  }
  return {
    source,
    appended,
    deliver: () => pop(batches),
    answerRead: () => pop(answers),
    positionOf(id) {
      const verdict = judgeCursor(id, { ...log, head: { ms: Number.MAX_SAFE_INTEGER, seq: 0 } })
      if (!verdict.ok) throw new Error(`the hub gave out an id that it does not accept: ${id} (${verdict.reason})`)
      return verdict.position
    },
    async trimmedThrough() {
      return (await log.windows(['a', 'b'])).map((window) => window.trimmedThrough)
    },
  }
}

function bound(log: Log): Log {
  const { name, durability, window, formats, history } = log
  return {
    ...{ name, durability, window, formats, history },
    append: (...given) => log.append(...given),
    read: (...given) => log.read(...given),
    invalidate: (channel) => log.invalidate(channel),
    end: (channel) => log.end(channel),
    retained: (...given) => log.retained(...given),
    channels: (...given) => log.channels(...given),
    probe: () => log.probe(),
    windows: (...given) => log.windows(...given),
    tail: (...given) => log.tail(...given),
    head: () => log.head(),
    close: () => log.close(),
  }
}

/** A reader that believes only whole frames, and checks what it was told. */
function createReader(hub: Hub, gates: Gates, names: readonly string[]) {
  const subscription = createSubscription(names)
  const seen: number[] = []
  const excused: { after: Position; through: Position }[] = []
  const complaints: string[] = []
  const audits: Promise<void>[] = []
  let lastId = ''
  let start: Position | undefined
  let current: { session: ConnectedReader; writes: Uint8Array[]; stalled: boolean; full: boolean } | undefined

  function believe(bytes: Uint8Array): void {
    const parser = createParser({
      lastEventId: lastId,
      onEvent({ type, data, id }) {
        if (type === 'message') seen.push(Number(data))
        if (type === 'hello') hello(id)
        if (type === 'sync-required') sync(JSON.parse(data), id)
        lastId = id
      },
    })
    parser.feed(utf8.decode(bytes))
  }

  function hello(id: string): void {
    if (lastId !== '' && id !== lastId) complaints.push(`hello moved the cursor from ${lastId} to ${id}`)
    start ??= gates.positionOf(id)
  }

  function sync(data: { requested: string }, id: string): void {
    excused.push({ after: gates.positionOf(data.requested), through: gates.positionOf(id) })
  }

  /** Judged when it is sent, not when it is read: a trim that comes later must not excuse it. */
  function auditAlarms(bytes: Uint8Array): void {
    const trimmed = gates.trimmedThrough()
    const parser = createParser({
      onEvent({ type, data }) {
        if (type !== 'sync-required') return
        const { reason, requested } = JSON.parse(data)
        const after = gates.positionOf(requested)
        const judge = async () => {
          const founded = reason === 'expired' && (await trimmed).some((position) => isAfter(position, after))
          if (!founded) complaints.push(`false alarm: ${data}`)
        }
        audits.push(judge())
      },
    })
    parser.feed(utf8.decode(bytes))
  }

  return {
    connect(): boolean {
      if (current) return false
      const connection = { writes: [] as Uint8Array[], stalled: false, full: false }
      const sink = {
        write({ plain }: { plain: Uint8Array }) {
          connection.writes.push(Uint8Array.from(plain))
          auditAlarms(plain)
          if (connection.stalled) connection.full = true
          return !connection.full
        },
        pending: 0,
        end() {},
        destroy() {},
      }
      const start = lastId === '' ? { from: 'now' as const } : { from: 'cursor' as const, cursor: lastId }
      const session = hub.port.subscribe({ kind: 'admitted', request: { subscription, start } }, sink)
      current = Object.assign(connection, { session })
      return true
    },
    /** Torn: half of the last write never arrives. */
    cut(torn: boolean): boolean {
      if (!current) return false
      const { writes, session } = current
      current = undefined
      session.disconnected()
      const last = writes.pop()
      if (last) writes.push(torn ? last.subarray(0, last.length >> 1) : last)
      believe(Buffer.concat(writes))
      return true
    },
    stall(): boolean {
      if (!current || current.stalled) return false
      current.stalled = true
      return true
    },
    drain(): boolean {
      if (!current?.stalled) return false
      current.stalled = false
      current.full = false
      current.session.drained()
      return true
    },
    async check(appended: readonly Appended[]): Promise<void> {
      this.cut(false)
      await Promise.all(audits)
      const from = start
      if (!from) throw new Error('the reader was never greeted')
      const owed = appended
        .filter(({ position }) => isAfter(position, from))
        .filter(({ n, position }) => {
          const gone = excused.some(
            (gap) => isAfter(position, gap.after) && comparePositions(position, gap.through) <= 0,
          )
          return !gone || seen.includes(n)
        })
        .map(({ n }) => n)
      if (seen.join() !== owed.join()) complaints.push(`owed ${owed.join()}, got ${seen.join()}`)
      if (complaints.length > 0) throw new Error(complaints.join('; '))
    },
  }
}
