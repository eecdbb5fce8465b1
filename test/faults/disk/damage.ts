import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRandom } from '@rejoin/hub/testing'
import { builtModule } from '../../support/paths.ts'
import { serveHub } from '../hubs/served-hub.ts'
import type { KeptEvent } from './audit.ts'
import { type PageKind, pageAt, startOfPage } from './lmdb-page-kinds.ts'

/**
 * Writes a log, and damages copies of its file: one bit in each, or its end cut off. Each copy is then opened by a process
 * of its own, read from several places to the end, published to and read again.
 */
export async function runDamage(options: DamageOptions): Promise<DamageOutcome[]> {
  const { directory, seed, flips, aimed, truncations, onProgress } = options
  const random = createRandom(seed)
  const sample = await writeSample(join(directory, 'sample'), random)
  const file = readFileSync(sample.file)
  const anywhere = () => Math.floor(random() * file.length)
  const flip = (at: number): Damage => ({ kind: 'flip', at, bit: Math.floor(random() * 8) })
  const damages: Damage[] = [
    ...Array.from({ length: flips }, () => flip(anywhere())),
    ...Array.from({ length: aimed }, () => flip(startOfPage(anywhere()) + Math.floor(random() * aimedBytes))),
    ...Array.from({ length: truncations }, (): Damage => ({ kind: 'truncate', at: anywhere() })),
  ]
  const sampleFile = join(directory, 'sample.json')
  writeFileSync(sampleFile, JSON.stringify(sample))
  const outcomes: DamageOutcome[] = []
  while (outcomes.length < damages.length) {
    await examine(join(directory, 'copy'), sampleFile, damages.slice(outcomes.length), (examined) => {
      const damage = damages[outcomes.length] as Damage
      outcomes.push({ damage, page: pageAt(file, damage.at), ...examined })
      onProgress?.(outcomes.length)
    })
  }
  return outcomes
}

export interface DamageOptions {
  readonly directory: string
  readonly seed: number
  /** Bits changed anywhere. */
  readonly flips: number
  /** Bits changed where pages begin: their headers, the places of what they hold, the two roots of the file. */
  readonly aimed: number
  readonly truncations: number
  onProgress?(done: number): void
}

export type Damage =
  | { readonly kind: 'flip'; readonly at: number; readonly bit: number }
  | { readonly kind: 'truncate'; readonly at: number }

export interface DamageOutcome extends Examined {
  readonly damage: Damage
  readonly page: PageKind
}

/**
 * What became of a damaged log. `served`: it was opened and read. `rejected`: it was not opened, with a message that says
 * why. `died`: the process ended, by a signal or by an error that nobody had caught. `stuck`: it took too long.
 */
export interface Examined {
  readonly end: 'served' | 'rejected' | 'died' | 'stuck'
  readonly message?: string
  readonly gaps?: number
  /** Reads or publishes that were answered with an error. */
  readonly unavailable?: number
  /** Data that is wrong, or missing without a word. */
  readonly wrong?: readonly string[]
}

export interface Sample {
  readonly file: string
  readonly channels: Readonly<Record<string, readonly KeptEvent[]>>
  /** A cursor from before the first event. */
  readonly start: string
}

export type ExaminerMessage = { readonly kind: 'trying' } | { readonly kind: 'done'; readonly examined: Examined }

/** A log that has been trimmed and closed, with events that share a page and some that fill several. */
async function writeSample(directory: string, random: () => number): Promise<Sample> {
  const { hub, port, close } = await serveHub({ directory, window: sampleWindow })
  const { cursor } = (await (await fetch(`http://127.0.0.1:${port}/poll/stock?waitMs=0`)).json()) as { cursor: string }
  const channels: Record<string, KeptEvent[]> = { 'orders/1': [], 'orders/2': [], stock: [] }
  for (let batch = 0; batch < 120; batch += 1) {
    const [channel, kept] = Object.entries(channels)[batch % 3] as [string, KeptEvent[]]
    const events = Array.from({ length: 1 + Math.floor(random() * 12) }, () => ({
      channel,
      text: `${kept.length} ${String.fromCharCode(97 + Math.floor(random() * 26)).repeat(Math.floor(random() ** 4 * 3000))}`,
    }))
    const published = await hub.publishBatch(events, { idempotencyKey: `batch ${batch}` })
    published.forEach(({ id }, index) => void kept.push({ id, data: (events[index] as { text: string }).text }))
  }
  await close()
  return { file: join(directory, 'data.mdb'), channels, start: cursor }
}

export const sampleWindow = { maxEvents: 150, maxAgeMs: 24 * 3_600_000 }

// What it does takes a tenth of a second. This is the margin of a machine that has much else to do.
const stuckAfterMs = 30_000

// The header of a page, and the places of its first nodes.
const aimedBytes = 64

/** Gives a result for each that one process lived for, and one for the damage it died of. */
async function examine(
  copy: string,
  sampleFile: string,
  damages: readonly Damage[],
  onResult: (examined: Examined) => void,
): Promise<void> {
  rmSync(copy, { recursive: true, force: true })
  mkdirSync(copy)
  const job = join(copy, 'damages.json')
  writeFileSync(job, JSON.stringify(damages))
  const child = spawn(process.execPath, [program, copy, sampleFile, job], {
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-2000)
  })
  let done = 0
  let isStuck = false
  let watchdog: NodeJS.Timeout | undefined
  child.on('message', (message: ExaminerMessage) => {
    clearTimeout(watchdog)
    if (message.kind === 'done') {
      done += 1
      onResult(message.examined)
      return
    }
    watchdog = setTimeout(() => {
      isStuck = true
      child.kill('SIGKILL')
    }, stuckAfterMs)
  })
  const [code, signal] = await once(child, 'close')
  clearTimeout(watchdog)
  rmSync(copy, { recursive: true, force: true })
  if (done === damages.length) return
  onResult(isStuck ? { end: 'stuck' } : { end: 'died', message: `${signal ?? `code ${code}`} ${said}`.trim() })
}

const program = builtModule('faults/disk/examiner.ts')
