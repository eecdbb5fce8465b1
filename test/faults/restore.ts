import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { type LastingHub, openLastingHub } from './lasting-hub.ts'
import { startProgram } from './program.ts'

/**
 * Copies the folder of `rejoin serve`, lets it go on, and puts the copy back; or starts a second one on the copy. Every id
 * that was ever acknowledged is then asked for: what the folder still knows goes on without a gap and with all that came
 * later, everything else is told.
 */
export async function runRestore({ directory, seed, cycles, onProgress }: RestoreOptions): Promise<RestoreOutcome> {
  const random = createRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const log = join(directory, 'log')
  const outcome = { restored: 0, cloned: 0, polls: 0, told: 0, wrong: [] as string[] }
  /** What the folder holds, oldest first, and what it has lost. */
  let held: string[] = []
  const lost: string[] = []

  async function publish(hub: LastingHub, into: string[], count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1) {
      const response = await fetch(`${hub.origin}/publish/a`, { method: 'POST', body: `${left}` })
      if (response.status !== 201) throw new Error(`A publish was answered with ${response.status}`)
      const { id } = (await response.json()) as { id: string }
      if (held.includes(id) || lost.includes(id)) outcome.wrong.push(`${id} was given out twice`)
      into.push(id)
    }
  }

  /** Asks for everything after each of these ids, some of many, and compares. */
  async function judge(hub: LastingHub, known: readonly string[], unknown: readonly string[]): Promise<void> {
    for (const id of [...sample(known), ...sample(unknown)]) {
      const { reason, ids } = await poll(hub, id)
      outcome.polls += 1
      const at = known.indexOf(id)
      if (at === -1) outcome.told += 1
      if (at === -1 && reason !== 'epoch')
        outcome.wrong.push(`${id}, which is lost, was answered with ${reason ?? ids}`)
      if (at !== -1 && reason !== undefined) outcome.wrong.push(`${id}, which is held, was told ${reason}`)
      const owed = known.slice(at + 1)
      if (at !== -1 && ids.join() !== owed.join()) outcome.wrong.push(`after ${id} came ${ids}, and not ${owed}`)
    }
  }

  function sample(ids: readonly string[]): string[] {
    return [...new Set([ids.at(0), ids.at(-1), ids[below(ids.length)], ids[below(ids.length)]])].filter(
      (id) => id !== undefined,
    )
  }

  const hub = await openLastingHub({ random, start: (port) => startProgram({ directory: log, port }) })
  const stop = () => (random() < 0.5 ? hub.stop() : hub.kill())
  try {
    for (let cycle = 1; cycle <= cycles; cycle += 1) {
      await publish(hub, held, below(6))
      await stop()
      // With an empty branch at its end, at times.
      if (random() < 0.5) {
        await hub.start()
        await stop()
      }
      const copy = join(directory, `copy-${cycle}`)
      copyFolder(log, copy)
      const before = [...held]
      await hub.start()
      await publish(hub, held, 1 + below(6))
      if (random() < 0.5) {
        const clone = await openLastingHub({ random, start: (port) => startProgram({ directory: copy, port }) })
        try {
          const theirs = [...before]
          await publish(clone, theirs, 1 + below(6))
          await judge(clone, theirs, held.slice(before.length))
          await judge(hub, held, theirs.slice(before.length))
          lost.push(...theirs.slice(before.length))
          await clone.stop()
        } finally {
          await clone.abandon()
        }
        outcome.cloned += 1
      } else {
        await stop()
        rmSync(log, { recursive: true })
        copyFolder(copy, log)
        lost.push(...held.slice(before.length))
        held = before
        await hub.start()
        await judge(hub, held, lost)
        await publish(hub, held, below(12))
        await judge(hub, held, lost)
        outcome.restored += 1
      }
      rmSync(copy, { recursive: true })
      onProgress?.(cycle)
    }
    await hub.stop()
  } finally {
    await hub.abandon()
  }
  return outcome
}

export interface RestoreOptions {
  readonly directory: string
  readonly seed: number
  readonly cycles: number
  onProgress?(cycle: number): void
}

export interface RestoreOutcome {
  /** How often an older copy was put back. */
  readonly restored: number
  /** How often a copy was used beside the original. */
  readonly cloned: number
  readonly polls: number
  /** Polls with an id that was lost, all of which have to be told. */
  readonly told: number
  readonly wrong: readonly string[]
}

/** A socket is no part of what is stored. */
function copyFolder(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('.sock') })
}

async function poll(hub: LastingHub, id: string): Promise<{ reason?: string; ids: string[] }> {
  const response = await fetch(`${hub.origin}/poll/a?waitMs=0`, { headers: { 'Last-Event-ID': id } })
  const { events } = (await response.json()) as { events: { id: string | null; type: string; data: string }[] }
  const told = events.find(({ type }) => type === 'sync-required')
  const ids = events.flatMap((event) => (event.type === 'message' && event.id ? [event.id] : []))
  return told ? { reason: (JSON.parse(told.data) as { reason: string }).reason, ids } : { ids }
}
