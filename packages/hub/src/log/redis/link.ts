import { RejoinError } from '@rejoin/protocol'
import { unavailable } from './checks.ts'
import type { Connection, Connector } from './client.ts'
import type { Greet, Greeted } from './greeting.ts'

/** The connection over which a hub asks. It comes back by itself, and nothing waits longer than it may. */
export interface Link {
  /**
   * Runs one step of the script. What fails because the connection or the server is gone is tried again on the next one:
   * steps may be sent twice. Rejects with `log-unavailable` when there was no answer in time; what it was to do may have
   * been done.
   */
  step(...args: string[]): Promise<Reply>
  /**
   * A step, and right behind it a command without keys, if one is given, to the same server over the same connection. Its
   * answer is undefined where the server rejects the command.
   */
  stepThen(command: readonly string[] | undefined, ...args: string[]): Promise<readonly [Reply, unknown]>
  /** A connection of its own, greeted. It leads to the same server as the others. */
  open(): Promise<Greeted>
  /** One step over a connection of its own, as it comes: nothing is tried again. */
  stepOver(greeted: Greeted, ...args: string[]): Promise<unknown>
  /** Looks at the log anew, over the given connection. */
  greetAgain(greeted: Greeted): Promise<Greeted>
  close(): void
}

export type Reply = readonly (string | Reply)[]

export interface LinkOptions {
  readonly connector: Connector
  /** Named by every call. */
  readonly keys: readonly string[]
  readonly answerWithinMs: number
  readonly greet: Greet
  /** Mends what was removed by hand. */
  readonly repairStep: string
}

export function createLink({ connector, keys, answerWithinMs, greet, repairStep }: LinkOptions): Link {
  const callOf = ({ script }: Greeted, args: readonly string[]) => [
    ...['EVALSHA', script.sha, String(keys.length), ...keys],
    ...args,
  ]
  const inUse = new Set<Greeted>()
  let current: Promise<Greeted> | undefined
  let failures = 0
  let wasGreeted = false
  let closed = false

  function ready(): Promise<Greeted> {
    if (!current) {
      const attempt = (failures === 0 ? open() : pause(backoff(failures)).then(open)).then(
        (greeted) => {
          failures = 0
          void greeted.connection.over.then(() => drop(attempt))
          return greeted
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

  function drop(attempt: Promise<Greeted> | undefined): void {
    if (attempt && current === attempt) current = undefined
  }

  async function open(): Promise<Greeted> {
    if (closed) throw closedError()
    let connection: Connection | undefined
    let isGivenUp = false
    try {
      return await within(answerWithinMs, async () => {
        for (let tries = 1; ; tries += 1) {
          connection = await connector.connect()
          try {
            return use(await greet(connection, (process) => agree(process, tries >= believedAfter)))
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
      throw refused(error)
    }
  }

  /**
   * All connections of a hub lead to one server. After a failover the old master may live on: with one connection to each of
   * them, every publish would seem lost to the other one. New connections find the new master, so a connection that leads
   * elsewhere time and again is believed, and those to the other server are ended.
   */
  function agree(process: string, isBelieved: boolean): void {
    const others = [...inUse].filter((greeted) => greeted.process !== process)
    if (others.length > 0 && !isBelieved) throw new Elsewhere()
    for (const { connection } of others) connection.destroy()
  }

  function use(greeted: Greeted): Greeted {
    wasGreeted = true
    inUse.add(greeted)
    void greeted.connection.over.then(() => inUse.delete(greeted))
    return greeted
  }

  const step = async (...args: string[]) => (await stepThen(undefined, ...args))[0]

  async function stepThen(
    command: readonly string[] | undefined,
    ...args: string[]
  ): Promise<readonly [Reply, unknown]> {
    const deadline = performance.now() + answerWithinMs
    for (let attempt = 1; ; attempt += 1) {
      if (closed) throw closedError()
      const taken = ready()
      const greeted = await limited(taken, deadline).catch((error) => {
        throw asUnavailable(error)
      })
      const mayTryAgain = attempt < attempts && performance.now() < deadline
      let reply: Reply
      let answer: unknown
      try {
        const sent = greeted.connection.send(callOf(greeted, args))
        // Where it is rejected, nothing is known; and whether the connection is well, the step tells.
        const behind = command && limited(greeted.connection.sendTo(greeted.process, command), deadline)
        const answered = behind?.catch(() => undefined)
        reply = (await limited(sent, deadline)) as Reply
        answer = await answered
      } catch (error) {
        const reason = reasonOf(error)
        // Also when the script itself fails: something was changed by hand that it did not expect.
        if ((reason === 'NOSCRIPT' || reason === 'ERR') && mayTryAgain) {
          await renew(taken, greeted)
          continue
        }
        if (!rejections.has(reason)) {
          // It is gone, or it hangs, or it is not the master any more.
          drop(taken)
          greeted.connection.destroy()
          if (mayTryAgain && !isLate(error)) continue
        }
        throw asUnavailable(error)
      }
      const [why] = reply
      if (typeof why !== 'string' || !why.startsWith('!')) return [reply, answer]
      if (!mayTryAgain) throw unavailable(`its log is not in order (${why.slice(1)})`)
      if (why === '!damaged') await repair(greeted, deadline)
      else await renew(taken, greeted)
    }
  }

  /** One look for all who were told to look again. */
  async function renew(taken: Promise<Greeted>, greeted: Greeted): Promise<void> {
    if (current !== taken) return
    const again = greetAgain(greeted).catch((error) => {
      drop(again)
      greeted.connection.destroy()
      throw error
    })
    current = again
    void greeted.connection.over.then(() => drop(again))
    await again
  }

  async function greetAgain(greeted: Greeted): Promise<Greeted> {
    inUse.delete(greeted)
    try {
      // Over a connection that was good so far: that of a Cluster finds a new master by itself.
      const again = await within(answerWithinMs, () => greet(greeted.connection, (process) => agree(process, true)))
      return use(again)
    } catch (error) {
      throw refused(error)
    }
  }

  /**
   * A server that the log is not opened on is the mistake of who opens it. Later, say after a failover to one that evicts, it
   * is nothing that a publisher has done: to it the log is away.
   */
  function refused(error: unknown): RejoinError {
    const isMistake = error instanceof RejoinError && error.code === 'invalid-option'
    return isMistake && wasGreeted ? unavailable(error.message, error) : asUnavailable(error)
  }

  async function repair(greeted: Greeted, deadline: number): Promise<void> {
    try {
      await limited(greeted.connection.send(callOf(greeted, [repairStep])), deadline)
    } catch (error) {
      throw asUnavailable(error)
    }
  }

  return {
    step,
    stepThen,
    open,
    stepOver: (greeted, ...args) => greeted.connection.send(callOf(greeted, args)),
    greetAgain,
    close() {
      closed = true
      void current?.then(
        ({ connection }) => connection.destroy(),
        () => undefined,
      )
    },
  }
}

// So often in a row a new connection leads to another server before it is believed: names take a moment to follow a failover.
const believedAfter = 3

/** A new connection leads to another server than those there are. */
class Elsewhere extends Error {
  constructor() {
    super('its connections lead to different servers')
  }
}

// A step that is told to look again, or meets a server that is going, is tried this often in all.
const attempts = 5

/** What the server rejects for reasons of its own, over a connection that is well. */
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
])

function reasonOf(error: unknown): string {
  return /^[A-Z]+(?= )/.exec((error as Error)?.message ?? '')?.[0] ?? ''
}

class Late extends Error {}

function isLate(error: unknown): boolean {
  return error instanceof Late
}

/** Times of a connection are those of the machine, not those of the hub's environment: the other end has no other. */
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

/** Grows to a second: who waits for the next try waits no longer than that. */
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
