import { longestProbeMs, silentForMs } from '../probe.ts'
import { openProbe, type Way } from '../probe-client.ts'
import { remedyFor } from '../remedies.ts'
import type { Check, Server } from '../report.ts'
import { within } from '../within.ts'

/** Whether a stream without any bytes for six seconds stays open. */
export async function silenceCheck(way: Way, server: Server): Promise<Check> {
  const name = 'silence'
  const askedAt = performance.now()
  const { reading } = await openProbe(way, 'silent', { statuses: [504] })
  const end = await reading.until(({ type }) => type === 'end')
  if (end) return { name, state: 'good', summary: `a stream may be silent for ${seconds(silentForMs)}` }
  const afterMs = (reading.endedAt ?? askedAt) - (reading.firstByteAt ?? askedAt)
  const summary = `a silent stream is cut after ${seconds(afterMs)}`
  return { name, state: 'fault', summary, figures: { afterMs: Math.round(afterMs) }, remedy: remedyFor(name, server) }
}

/** Whether a stream that carries heartbeats alone stays open for `idleMs`. */
export async function idleCheck(way: Way, server: Server, idleMs: number): Promise<Check> {
  const name = 'idle'
  const { answer, reading } = await openProbe(way, 'beating')
  const openedAt = performance.now()
  await within(reading.ended, Math.min(idleMs, longestIdleMs))
  const { endedAt } = reading
  answer.close()
  const figures = { idleMs: Math.round((endedAt ?? performance.now()) - openedAt), heartbeats: reading.comments.length }
  if (endedAt === undefined) {
    return {
      name,
      state: 'good',
      summary: `open for ${seconds(figures.idleMs)} with ${figures.heartbeats} heartbeats`,
      figures,
    }
  }
  const summary = `a stream with nothing but heartbeats is cut after ${seconds(figures.idleMs)}`
  return { name, state: 'fault', summary, figures, remedy: remedyFor(name, server) }
}

/** The most that `--idle` can ask for. The hub ends every probe ten seconds later. */
const longestIdleMs = longestProbeMs - 10_000

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
}
