/* The process that opens damaged logs for damage.ts. It may die of any of them. */
import { copyFileSync, mkdirSync, openSync, readFileSync, readSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { RejoinError } from '@rejoin/protocol'
import { tellParent } from '../../support/tell-parent.ts'
import { type ServedHub, serveHub } from '../hubs/served-hub.ts'
import { auditChannel, type KeptEvent } from './audit.ts'
import { type Damage, type Examined, type ExaminerMessage, type Sample, sampleWindow } from './damage.ts'

const [copy = '', sampleFile = '', job = ''] = process.argv.slice(2)
const sample = JSON.parse(readFileSync(sampleFile, 'utf8')) as Sample
const damages = JSON.parse(readFileSync(job, 'utf8')) as Damage[]
for (const [index, damage] of damages.entries()) {
  tell({ kind: 'trying' })
  tell({ kind: 'done', examined: await examineCopy(join(copy, String(index)), damage) })
}
process.disconnect?.()

function tell(message: ExaminerMessage): void {
  tellParent(message)
}

async function examineCopy(directory: string, damage: Damage): Promise<Examined> {
  mkdirSync(directory)
  const file = join(directory, 'data.mdb')
  copyFileSync(sample.file, file)
  inflict(damage, file)
  let served: ServedHub
  try {
    served = await serveHub({ directory, window: sampleWindow })
  } catch (error) {
    if (!(error instanceof RejoinError)) throw error
    return { end: 'rejected', message: error.message }
  }
  const examined = await examineHub(`http://127.0.0.1:${served.port}`)
  await served.close()
  rmSync(directory, { recursive: true })
  return examined
}

function inflict(damage: Damage, file: string): void {
  if (damage.kind === 'truncate') {
    truncateSync(file, damage.at)
    return
  }
  const descriptor = openSync(file, 'r+')
  const byte = Buffer.alloc(1)
  readSync(descriptor, byte, { position: damage.at })
  byte[0] = (byte[0] as number) ^ (1 << damage.bit)
  writeSync(descriptor, byte, 0, 1, damage.at)
}

/** Reads every channel, publishes to it, and reads on as somebody who had been there all the time, and as one who had not. */
async function examineHub(origin: string): Promise<Examined> {
  const sum = { end: 'served' as const, gaps: 0, unavailable: 0, wrong: [] as string[] }
  const audit = async (channel: string, kept: readonly KeptEvent[], from: string) => {
    const { gaps, unavailable, wrong } = await auditChannel(origin, { channel, kept, from })
    sum.gaps += gaps
    sum.unavailable += unavailable === undefined ? 0 : 1
    sum.wrong.push(...wrong)
  }
  for (const [channel, kept] of Object.entries(sample.channels)) {
    const newest = kept.at(-1) as KeptEvent
    const middle = kept[kept.length - 60] as KeptEvent
    for (const from of [sample.start, middle.id, newest.id]) await audit(channel, kept, from)
    const more: KeptEvent[] = [...kept]
    for (let batch = 0; batch < 3; batch += 1) {
      const events = Array.from({ length: 4 }, (_, index) => ({
        channel,
        text: `more ${batch} ${'z'.repeat(index * 800)}`,
      }))
      const response = await fetch(`${origin}/publish`, { method: 'POST', body: JSON.stringify(events) })
      const answer = (await response.json()) as { events: { id: string }[] }
      if (response.status === 201) {
        more.push(...answer.events.map(({ id }, index) => ({ id, data: (events[index] as { text: string }).text })))
      } else sum.unavailable += 1
    }
    for (const from of [middle.id, newest.id]) await audit(channel, more, from)
  }
  return sum
}
