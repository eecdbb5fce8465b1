import { RejoinError } from '@rejoin/protocol'
import { unavailable } from './checks.ts'
import type { Connection, Connector } from './client.ts'
import type { Handshake, ReadyConnection } from './handshake.ts'

/** The connection over which a hub runs steps of the script. It reconnects by itself, and no step waits longer than it may. */
export interface Link {
  /**
   * Runs one step of the script. When the connection or the server is gone, tries the step again on the next one: every step
   * may be sent twice. Rejects with `log-unavailable` when there is no answer in time; Redis may have run the step all the
   * same.
   */
  step(...args: string[]): Promise<Reply>
  /**
   * Runs a step, and right after it a command without keys, if one is given, over the same connection to the same server. The
   * answer to the command is undefined when the server rejects it.
   */
  stepThen(command: readonly string[] | undefined, ...args: string[]): Promise<readonly [Reply, unknown]>
  /** Opens another connection for the caller alone. It leads to the same server as all connections of this hub. */
  open(): Promise<ReadyConnection>
  /** Runs one step over the given connection, without another try. */
  stepOver(ready: ReadyConnection, ...args: string[]): Promise<unknown>
  /** Does something over the connection for steps before it is closed, if there is one. Gives up soon, and in silence. */
  last(task: (ready: ReadyConnection) => Promise<void>): Promise<void>
  /** Looks at the log once more, over the given connection. */
  handshakeAgain(ready: ReadyConnection): Promise<ReadyConnection>
  close(): void
}

export type Reply = readonly (string | Reply)[]

/** Runs a step of the script. Adds the first two arguments of every step: how far this hub has seen, and the time. */
export type Ask = (step: string, ...args: string[]) => Promise<Reply>

export interface LinkOptions {
  readonly connector: Connector
  /** The keys that every call names. */
  readonly keys: readonly string[]
  readonly answerWithinMs: number
  readonly handshake: Handshake
}

export function createLink({ connector, keys, answerWithinMs, handshake }: LinkOptions): Link {
  const callOf = ({ script }: ReadyConnection, args: readonly string[]) => [
    ...['EVALSHA', script.sha, String(keys.length), ...keys],
    ...args,
  ]
  const inUse = new Set<ReadyConnection>()
  let current: Promise<ReadyConnection> | undefined
  let failures = 0
  let wasReady = false
  let closed = false

  function connected(): Promise<ReadyConnection> {
    if (!current) {
      const attempt = (failures === 0 ? open() : pause(backoff(failures)).then(open)).then(
        (ready) => {
          failures = 0
          void ready.connection.over.then(() => drop(attempt))
          return ready
        },
        (error) => {
          failures += 1
          drop(attempt)
          throw error
        },
      )
      current = attempt
    }
    return current
  }

  function drop(attempt: Promise<ReadyConnection> | undefined): void {
    if (attempt && current === attempt) current = undefined
  }

  async function open(): Promise<ReadyConnection> {
    if (closed) throw closedError()
    let connection: Connection | undefined
    let isGivenUp = false
    try {
      return await within(answerWithinMs, async () => {
        for (let tries = 1; ; tries += 1) {
          connection = await connector.connect()
          try {
            return use(await handshake(connection, (process) => agree(process, tries >= believedAfter)))
          } catch (error) {
            if (!(error instanceof Elsewhere)) throw error
          }
          connection.destroy()
          await pause(backoff(tries))
          if (isGivenUp) throw new Elsewhere()
        }
      })
    } catch (error) {
      isGivenUp = true
      connection?.destroy()
      throw rejected(error)
    }
  }

  /**
   * Makes all connections of a hub lead to one server. After a failover the old master may live on. With one connection to each
   * master, every publish would seem lost to the other one. New connections find the new master. So when new connections lead to
   * another server time after time, the hub believes them and ends its connections to the old server.
   */
  function agree(process: string, isBelieved: boolean): void {
    const others = [...inUse].filter((ready) => ready.process !== process)
    if (others.length > 0 && !isBelieved) throw new Elsewhere()
    for (const { connection } of others) connection.destroy()
  }

  function use(ready: ReadyConnection): ReadyConnection {
    wasReady = true
    inUse.add(ready)
    void ready.connection.over.then(() => inUse.delete(ready))
    return ready
  }

  const step = async (...args: string[]) => (await stepThen(undefined, ...args))[0]

  async function stepThen(
    command: readonly string[] | undefined,
    ...args: string[]
  ): Promise<readonly [Reply, unknown]> {
    const deadline = performance.now() + answerWithinMs
    for (let attempt = 1; ; attempt += 1) {
      if (closed) throw closedError()
      const taken = connected()
      const ready = await limited(taken, deadline).catch((error) => {
        throw asUnavailable(error)
      })
      const mayTryAgain = attempt < attempts && performance.now() < deadline
      let reply: Reply
      let answer: unknown
      try {
        const sent = ready.connection.send(callOf(ready, args))
        // A rejected command tells nothing. The step tells whether the connection works.
        const behind = command && limited(ready.connection.sendTo(ready.process, command), deadline)
        const answered = behind?.catch(() => undefined)
        reply = (await limited(sent, deadline)) as Reply
        answer = await answered
      } catch (error) {
        const reason = reasonOf(error)
        if (reason === 'NOSCRIPT' && mayTryAgain) {
          await renew(taken, ready)
          continue
        }
        if (!rejections.has(reason)) {
          // The server is gone, or it hangs, or it is no longer the master.
          drop(taken)
          ready.connection.destroy()
          if (mayTryAgain && !isLate(error)) continue
        }
        throw asUnavailable(error)
      }
      const [why] = reply
      if (typeof why !== 'string' || !why.startsWith('!')) return [reply, answer]
      if (!mayTryAgain) throw unavailable(`its log is not in order (${why.slice(1)})`)
      await renew(taken, ready)
    }
  }

  /** All steps that have to look again share one look. */
  async function renew(taken: Promise<ReadyConnection>, ready: ReadyConnection): Promise<void> {
    if (current !== taken) return
    const again = handshakeAgain(ready).catch((error) => {
      drop(again)
      ready.connection.destroy()
      throw error
    })
    current = again
    void ready.connection.over.then(() => drop(again))
    await again
  }

  async function handshakeAgain(ready: ReadyConnection): Promise<ReadyConnection> {
    inUse.delete(ready)
    try {
      // Believes the connection at once, because it was good so far: the client of a Cluster finds a new master by itself.
      const again = await within(answerWithinMs, () => handshake(ready.connection, (process) => agree(process, true)))
      return use(again)
    } catch (error) {
      throw rejected(error)
    }
  }

  /**
   * When a log is opened on a server that it rejects, that is a mistake of the caller. Later, for example after a failover to a
   * server that evicts keys, no publisher has made a mistake: the log is unavailable.
   */
  function rejected(error: unknown): RejoinError {
    const isMistake = error instanceof RejoinError && error.code === 'invalid-option'
    return isMistake && wasReady ? unavailable(error.message, error) : asUnavailable(error)
  }

  return {
    step,
    stepThen,
    open,
    stepOver: (ready, ...args) => ready.connection.send(callOf(ready, args)),
    handshakeAgain,
    async last(task) {
      const taken = current
      if (taken) await within(lastWithinMs, async () => task(await taken)).catch(() => undefined)
    },
    close() {
      closed = true
      void current?.then(
        ({ connection }) => connection.destroy(),
        () => undefined,
      )
    },
  }
}

// The hub believes a new server after so many connections to it in a row: after a failover, host names need a moment to follow.
const believedAfter = 3

/** A new connection leads to another server than the other connections of this hub. */
class Elsewhere extends Error {
  constructor() {
    super('its connections lead to different servers')
  }
}

// Most servers answer in a millisecond. A hub that stops should not wait for one that does not.
const lastWithinMs = 500

// How often a step is tried in all, when it has to look again or when its server goes away.
const attempts = 5

/** Error codes of a server that rejects a command while the connection is good. */
const rejections = new Set([
  'OOM',
  'MISCONF',
  'NOPERM',
  'WRONGTYPE',
  'ERR',
  'BUSY',
  'NOREPLICAS',
  'NOSCRIPT',
  'TRYAGAIN',
  'CLOCK',
])

function reasonOf(error: unknown): string {
  return /^[A-Z]+(?= )/.exec((error as Error)?.message ?? '')?.[0] ?? ''
}

class Late extends Error {}

function isLate(error: unknown): boolean {
  return error instanceof Late
}

/** Uses the clock of the machine, not that of the hub's environment: the server at the other end knows no other. */
export async function within<Result>(ms: number, task: () => Promise<Result>): Promise<Result> {
  return limited(task(), performance.now() + ms)
}

function limited<Result>(work: Promise<Result>, deadline: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Late('no answer in time')), Math.max(0, deadline - performance.now()))
    timer.unref()
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref())
}

/** The pause before the next try. It grows to one second at most. */
export function backoff(failures: number): number {
  return Math.min(1000, 25 * 2 ** Math.min(failures, 6)) * (0.5 + Math.random() / 2)
}

export function asUnavailable(error: unknown): RejoinError {
  if (error instanceof RejoinError) return error
  return unavailable((error as Error)?.message ?? String(error), error)
}

export function closedError(): RejoinError {
  return new RejoinError('The log is closed. Publish and subscribe before closing the hub.', { code: 'closed' })
}
