import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { spreadOf } from '../checker/tally.ts'
import type { UntimedLine } from '../history.ts'
import type { ServerProcess } from '../server-process.ts'

/** What an attack costs the hub and its honest readers. */
export interface Cost {
  /** The most memory the hub had. */
  readonly rss: number
  /** What of it was mapped from files, the program and its log: the system takes that back when somebody needs it. */
  readonly files: number
  /** From a publish to an honest reader that has it, in ms: 99 of 100 were faster. */
  readonly p99: number
  /** How many of those there were. */
  readonly deliveries: number
  /**
   * The slowest answer to a request that needs nothing: about the longest turn of the hub's loop, and an upper bound for it,
   * because the processor is shared with the attackers.
   */
  readonly longestTurn: number
}

export type Memory = Pick<Cost, 'rss' | 'files'>

/** Watches a hub from outside: its memory, its shortest answer, and how old events are when honest readers get them. */
export function openMeter(hub: { readonly port: number; running(): ServerProcess }): Meter {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const called = new Map<string, number>()
  let ages: number[] = []
  let most: Memory = { rss: 0, files: 0 }
  let longestTurn = 0
  let open = true

  void watchMemory()
  void watchTurns()

  function memoryNow(): Memory {
    try {
      const [, pages, shared] = readFileSync(`/proc/${hub.running().pid}/statm`, 'utf8').split(' ')
      return { rss: Number(pages) * 4096, files: Number(shared) * 4096 }
    } catch {
      // It has died, which is told elsewhere.
      return { rss: 0, files: 0 }
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
      if (since !== undefined) ages.push(performance.now() - since)
    },
    begin() {
      ages = []
      most = { rss: 0, files: 0 }
      longestTurn = 0
    },
    cost() {
      const p99 = spreadOf(ages)?.p99 ?? Number.POSITIVE_INFINITY
      return { ...most, p99, deliveries: ages.length, longestTurn }
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

export interface Meter {
  see(line: UntimedLine): void
  /** From now on everything is charged to another attack. */
  begin(): void
  cost(): Cost
  memoryNow(): Memory
  /** Waits until the hub has no more memory than that, or the time is over. Resolves with what it has then. */
  rssBelow(bytes: number, withinMs: number): Promise<Memory>
  close(): void
}
