import { closeSync, copyFileSync, cpSync, ftruncateSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { startProgram } from '../../support/program.ts'
import { type LastingHub, openLastingHub } from '../hubs/lasting-hub.ts'
import type { FolderRunOptions, FolderRunOutcome } from './folder-run.ts'

/**
 * Copies the folder of `rejoin serve`, lets it go on, and puts the copy back, at times over the file that is in use; or starts a
 * second one on the copy. Every id that was ever acknowledged is then asked for: what the folder still knows goes on without a gap and with all that came
 * later, everything else is told.
 */
export async function runRestore({ directory, seed, cycles, onProgress }: FolderRunOptions): Promise<RestoreOutcome> {
  const random = createRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const log = join(directory, 'log')
  const outcome = { restored: 0, overwritten: 0, cloned: 0, polls: 0, told: 0, wrong: [] as string[] }
  /** What the folder holds, oldest first, and what it has lost. */
  let held: string[] = []
  const lost: string[] = []

  async function publish(hub: LastingHub, into: string[], count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1) {
      const response = await fetch(`${hub.origin}/publish/a`, {
        method: 'POST',
        body: `${left}`,
        headers: { 'Content-Type': 'application/json' },
      })
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

  /** Copies the file in use, goes on, and puts the copy over it: nothing may be acknowledged any more. */
  async function overwrite(copy: string): Promise<void> {
    const [file, older] = [join(log, 'data.mdb'), join(copy, 'data.mdb')]
    copyFileSync(file, older)
    await publish(hub, held, 1 + below(6))
    overwriteFile(file, readFileSync(older))
    for (let left = below(3); left > 0; left -= 1) {
      const { status } = await fetch(`${hub.origin}/publish/a`, { method: 'POST', body: 'late' })
      if (status !== 503) outcome.wrong.push(`A publish to a file that was overwritten was answered with ${status}`)
    }
    outcome.overwritten += 1
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
      const move = moves[(seed + cycle) % moves.length]
      if (move === 'clone') {
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
        if (move === 'overwrite') {
          before.push(...held.slice(before.length))
          await overwrite(copy)
          await stop()
        } else {
          await stop()
          rmSync(log, { recursive: true })
          copyFolder(copy, log)
          outcome.restored += 1
        }
        lost.push(...held.slice(before.length))
        held = before
        await hub.start()
        await judge(hub, held, lost)
        await publish(hub, held, below(12))
        await judge(hub, held, lost)
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

export interface RestoreOutcome extends FolderRunOutcome {
  /** How often an older copy was put back. */
  readonly restored: number
  /** How often it was put back while the hub ran. */
  readonly overwritten: number
  /** How often a copy was used beside the original. */
  readonly cloned: number
  readonly polls: number
  /** Polls with an id that was lost, all of which have to be told. */
  readonly told: number
}

const moves = ['restore', 'overwrite', 'clone'] as const

/** A socket is no part of what is stored. */
function copyFolder(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('.sock') })
}

/** As `cp` does, but without a moment at which the file is empty: a hub that reads it just then is ended by a signal. */
function overwriteFile(path: string, bytes: Buffer): void {
  const file = openSync(path, 'r+')
  writeSync(file, bytes)
  ftruncateSync(file, bytes.length)
  closeSync(file)
}

async function poll(hub: LastingHub, id: string): Promise<{ reason?: string; ids: string[] }> {
  const response = await fetch(`${hub.origin}/poll/a?waitMs=0`, { headers: { 'Last-Event-ID': id } })
  const { events } = (await response.json()) as { events: { id: string | null; type: string; data: string }[] }
  const told = events.find(({ type }) => type === 'sync-required')
  const ids = events.flatMap((event) => (event.type === 'message' && event.id ? [event.id] : []))
  return told ? { reason: (JSON.parse(told.data) as { reason: string }).reason, ids } : { ids }
}
