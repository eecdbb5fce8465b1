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

/** Watches a hub from outside: its memory, its shortest answer, and how old events are when honest readers get them. */
export function openMeter(hub: { readonly port: number; running(): ServerProcess }): Meter {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const called = new Map<string, number>()
  let ages: number[] = []
  let rss = 0
  let longestTurn = 0
  let open = true

  void watchMemory()
  void watchTurns()

  function rssNow(): number {
    try {
      const pages = readFileSync(`/proc/${hub.running().pid}/statm`, 'utf8').split(' ')[1]
      return Number(pages) * 4096
    } catch {
      // It has died, which is told elsewhere.
      return 0
    }
  }

  async function watchMemory(): Promise<void> {
    for (; open; await pause(50)) rss = Math.max(rss, rssNow())
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
      rss = 0
      longestTurn = 0
    },
    cost: () => ({ rss, p99: spreadOf(ages)?.p99 ?? Number.POSITIVE_INFINITY, deliveries: ages.length, longestTurn }),
    rssNow,
    async rssBelow(bytes, withinMs) {
      const limit = performance.now() + withinMs
      while (rssNow() > bytes && performance.now() < limit) await pause(500)
      return rssNow()
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
  rssNow(): number
  /** Waits until the hub has no more memory than that, or the time is over. Resolves with what it has then. */
  rssBelow(bytes: number, withinMs: number): Promise<number>
  close(): void
}
