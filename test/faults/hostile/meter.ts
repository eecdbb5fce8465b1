import { readFileSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { ServerProcess } from '../../support/server-process.ts'
import { spreadOf } from '../checker/tally.ts'
import type { UntimedLine } from '../history/history.ts'

/** What an attack costs the hub and its honest readers. */
export interface Cost {
  /** The most memory the hub had. */
  readonly rss: number
  /** What of it was mapped from files, the program and its log: the system takes that back when somebody needs it. */
  readonly files: number
  /** From a publish to an honest reader that has it, in ms: 99 of 100 were faster. */
  readonly p99: number
  /** Seconds whose publishes did not come to 99 of 100 readers within `lateMs`. */
  readonly lateSeconds: number
  /** The p99 of all other seconds. */
  readonly p99Otherwise: number
  /** How many receipts there were. */
  readonly deliveries: number
  /** How much of a processor the hub's own thread had, of 1. */
  readonly ran: number
  /** For how much of the time that thread could have run, and others had the processors: attackers, readers, and strangers. */
  readonly waited: number
  /**
   * The longest that the disk took to flush a kilobyte, in ms. A publish waits for its flush, so that no reader has an event
   * sooner; the disk is shared with whatever else the machine does.
   */
  readonly longestFlush: number
  /**
   * The slowest answer to a request that needs nothing: about the longest turn of the hub's loop, and an upper bound for it,
   * because the processor is shared with the attackers.
   */
  readonly longestTurn: number
  /** Readers that came meanwhile, over a connection of their own and with a cursor that others have, too. */
  readonly newcomers: number
  /** Those of them that were not greeted within `greetedMs`. */
  readonly kept: number
}

export type Memory = Pick<Cost, 'rss' | 'files'>

/** A hub, and where it is reached without TLS. */
export interface Metered {
  readonly port: number
  running(): ServerProcess
}

/** Watches a hub from outside: its memory, its shortest answer, its newcomers, and how old events are when honest readers get them. */
export function openMeter(hub: Metered, folder: string): Meter {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const called = new Map<string, number>()
  let ages = new Map<number, number[]>()
  let clock = clockNow()
  let most: Memory = { rss: 0, files: 0 }
  let longestTurn = 0
  let longestFlush = 0
  let [newcomers, kept] = [0, 0]
  let open = true

  void watchMemory()
  void watchTurns()
  void watchDisk()

  function memoryNow(): Memory {
    try {
      const [, pages, shared] = readFileSync(`/proc/${hub.running().pid}/statm`, 'utf8').split(' ')
      return { rss: Number(pages) * 4096, files: Number(shared) * 4096 }
    } catch {
      // It has died, which is told elsewhere.
      return { rss: 0, files: 0 }
    }
  }

  /** What the system counts for the hub's main thread, in ms. */
  function clockNow(): { at: number; ran: number; waited: number } {
    const at = performance.now()
    try {
      const [ran, waited] = readFileSync(`/proc/${hub.running().pid}/schedstat`, 'utf8').split(' ')
      return { at, ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 }
    } catch {
      return { at, ran: 0, waited: 0 }
    }
  }

  async function watchMemory(): Promise<void> {
    for (; open; await pause(50)) {
      const now = memoryNow()
      if (now.rss > most.rss) most = now
    }
  }

  async function watchTurns(): Promise<void> {
    for (; open; await pause(20)) {
      const asked = performance.now()
      await ask()
      longestTurn = Math.max(longestTurn, performance.now() - asked)
    }
  }

  async function watchDisk(): Promise<void> {
    const file = await openFile(join(folder, 'flushed'), 'w')
    for (; open; await pause(50)) {
      const begun = performance.now()
      await file.write(kilobyte, 0, kilobyte.length, 0)
      await file.datasync()
      longestFlush = Math.max(longestFlush, performance.now() - begun)
    }
    await file.close()
  }

  async function watchNewcomers(cursor: string): Promise<void> {
    for (; open; await pause(500)) {
      const isGreeted = await greets(hub.port, cursor)
      newcomers += 1
      if (!isGreeted) kept += 1
    }
  }

  function ask(): Promise<void> {
    return new Promise((resolve) => {
      const asking = request({ port: hub.port, host: '127.0.0.1', path: '/healthz', agent }, (response) => {
        response.resume().once('close', () => resolve())
      })
      asking.once('error', () => resolve()).end()
    })
  }

  return {
    see(line) {
      if (line.kind === 'invoke') called.set(`${line.channel} ${line.seq}`, performance.now())
      if (line.kind !== 'recv') return
      const since = called.get(`${line.channel} ${line.seq}`)
      if (since === undefined) return
      const second = Math.floor(since / 1000)
      const inSecond = ages.get(second) ?? []
      ages.set(second, inSecond)
      inSecond.push(performance.now() - since)
    },
    watchNewcomers: (cursor) => void watchNewcomers(cursor),
    begin() {
      ;[newcomers, kept] = [0, 0]
      ages = new Map()
      clock = clockNow()
      most = { rss: 0, files: 0 }
      longestTurn = 0
      longestFlush = 0
    },
    cost() {
      const seconds = [...ages.values()]
      const punctual = seconds.filter((second) => p99Of(second) <= lateMs)
      const now = clockNow()
      const share = (ms: number) => ms / (now.at - clock.at)
      return {
        ...{ ...most, longestTurn, longestFlush, deliveries: seconds.flat().length, newcomers, kept },
        p99: seconds.length > 0 ? p99Of(seconds.flat()) : Number.POSITIVE_INFINITY,
        ...{ lateSeconds: seconds.length - punctual.length, p99Otherwise: p99Of(punctual.flat()) },
        ...{ ran: share(now.ran - clock.ran), waited: share(now.waited - clock.waited) },
      }
    },
    memoryNow,
    async rssBelow(bytes, withinMs) {
      const limit = performance.now() + withinMs
      while (memoryNow().rss > bytes && performance.now() < limit) await pause(500)
      return memoryNow()
    },
    close() {
      open = false
      agent.destroy()
    },
  }
}

const kilobyte = Buffer.alloc(1024)

/** Whether a reader is let in that knows the protocol only, as a browser's EventSource does. */
function greets(port: number, cursor: string): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { 'Last-Event-ID': cursor }
    const asking = request({ port, host: '127.0.0.1', path: '/events/oldest', agent: false, headers }, (response) => {
      response.setEncoding('utf8').once('data', (text: string) => finish(text.includes('event: hello')))
      response.once('error', () => finish(false))
    })
    const late = setTimeout(() => finish(false), greetedMs)
    const finish = (isGreeted: boolean) => {
      clearTimeout(late)
      asking.destroy()
      resolve(isGreeted)
    }
    asking.once('error', () => finish(false)).end()
  })
}

/** How long a newcomer may wait. Whoever shares a cursor with a client in a loop waits for three seconds; the rest is the machine's. */
export const greetedMs = 10_000

/** When an event is late. */
export const lateMs = 500

function p99Of(ages: readonly number[]): number {
  return spreadOf([...ages])?.p99 ?? 0
}

export interface Meter {
  see(line: UntimedLine): void
  /** From now on, newcomers come with this cursor. */
  watchNewcomers(cursor: string): void
  /** From now on everything is charged to another attack. */
  begin(): void
  cost(): Cost
  memoryNow(): Memory
  /** Waits until the hub has no more memory than that, or the time is over. Resolves with what it has then. */
  rssBelow(bytes: number, withinMs: number): Promise<Memory>
  close(): void
}
