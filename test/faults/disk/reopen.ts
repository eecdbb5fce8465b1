import { createRandom } from '@rejoin/hub/testing'
import { startProgram } from '../../support/program.ts'
import { memoryHistory } from '../history/history.ts'
import { startHub } from '../hubs/hub-process.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'
import { auditChannel, type KeptEvent } from './audit.ts'
import type { FolderRunOptions, FolderRunOutcome } from './folder-run.ts'

/**
 * Fills `rejoin serve` with events, takes most of them away again, ends it in order or by SIGKILL, and opens the folder
 * again. A folder that nothing has happened to must open, and must hold what it acknowledged.
 */
export async function runReopen({ directory, seed, cycles, onProgress }: FolderRunOptions): Promise<ReopenOutcome> {
  const random = createRandom(seed)
  const below = (limit: number) => Math.floor(random() * limit)
  const channels = new Map(channelNames.map((name): [string, Kept] => [name, { events: [], gone: 0, told: 0 }]))
  const outcome = { opened: 1, shrunk: 0, invalidated: 0, killed: 0, audits: 0, wrong: [] as string[] }
  const hub = await openLastingHub({
    random,
    start: (port) => startProgram({ directory, port, env: { REJOIN_ADMIN_TOKEN: token } }),
  })

  async function publish(name: string, events: number, units: number): Promise<void> {
    const kept = channels.get(name) as Kept
    const texts = Array.from({ length: events }, (_, index) => `${kept.events.length + index} ${'x'.repeat(units)}`)
    const body = JSON.stringify(texts.map((text) => ({ channel: name, text })))
    const answer = await ask(`${hub.origin}/publish`, { method: 'POST', body }, 201)
    for (const [index, { id }] of (answer as { events: { id: string }[] }).events.entries()) {
      kept.events.push({ id, data: texts[index] as string })
    }
  }

  async function invalidate(name: string): Promise<void> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ channel: name })
    await ask(`${hub.origin}/admin/invalidate`, { method: 'POST', headers, body }, 200)
    const kept = channels.get(name) as Kept
    kept.gone = kept.events.length
    kept.told = kept.events.length
    outcome.invalidated += 1
  }

  /** Opens the folder with a window of a few events, or of a millisecond, in which most of it is let go. */
  async function shrink(): Promise<void> {
    const keeps = below(2) * below(20)
    const window = keeps === 0 ? { maxAgeMs: 1 } : { maxEvents: keeps }
    const small = await startHub(memoryHistory(), { directory, window })
    for (const [name, kept] of channels) {
      // A read finds what is over, and has it removed.
      await ask(`http://127.0.0.1:${small.port}/poll/${name}?lastEventId=earliest&waitMs=0`, {}, 200)
      const gone = kept.events.length - keeps
      if (gone > kept.gone) Object.assign(kept, { gone, told: gone - 1 })
    }
    await (random() < 0.5 ? small.stop() : small.kill())
    outcome.shrunk += 1
  }

  async function audit(): Promise<void> {
    for (const [channel, { events: kept, gone, told }] of channels) {
      // From what is gone, from the edge of it, and from somewhere in what is held.
      for (const at of [0, gone - 1, gone + below(kept.length - gone)]) {
        const from = kept[at]?.id
        if (from === undefined) continue
        const { gaps, unavailable, wrong } = await auditChannel(hub.origin, { channel, kept, from })
        outcome.audits += 1
        outcome.wrong.push(...wrong)
        if (unavailable !== undefined) outcome.wrong.push(`${channel} from ${at}: ${unavailable}`)
        if (gaps > 0 && at >= told) outcome.wrong.push(`${channel} from ${at}: a gap, with ${gone} events gone`)
      }
    }
  }

  try {
    for (let cycle = 1; cycle <= cycles; cycle += 1) {
      for (let round = below(6); round >= 0; round -= 1) {
        await publish(channelNames[below(channelNames.length)] as string, 1 + below(30), 2 ** below(14))
      }
      if (random() < 0.7) await invalidate(channelNames[below(channelNames.length)] as string)
      const isKilled = random() < 0.5
      await (isKilled ? hub.kill() : hub.stop())
      outcome.killed += isKilled ? 1 : 0
      if (random() < 0.3) await shrink()
      await hub.start()
      outcome.opened += 1
      await audit()
      onProgress?.(cycle)
    }
    await hub.stop()
  } finally {
    await hub.abandon()
  }
  return outcome
}

export interface ReopenOutcome extends FolderRunOutcome {
  readonly opened: number
  /** How often most of it was let go by a smaller window. */
  readonly shrunk: number
  readonly invalidated: number
  /** How often it was ended by SIGKILL; else it was in order. */
  readonly killed: number
  readonly audits: number
}

interface Kept {
  readonly events: KeptEvent[]
  /** So many of the oldest are no longer held. */
  gone: number
  /** A reader that stands at one of so many oldest is told. After a trim, the newest that is gone is no gap to its reader. */
  told: number
}

const channelNames = ['a', 'b', 'c']
const token = 'a-token-for-this-run'

async function ask(url: string, request: RequestInit, status: number): Promise<unknown> {
  const response = await fetch(url, request)
  const text = await response.text()
  if (response.status !== status) throw new Error(`${url} was answered with ${response.status}: ${text}`)
  return JSON.parse(text)
}
