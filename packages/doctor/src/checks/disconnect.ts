import { setTimeout as sleep } from 'node:timers/promises'
import type { ProbeSeen } from '../probe.ts'
import { jsonOf, openProbe, probePath, streamRequest, type Way } from '../probe-client.ts'
import { remedyFor } from '../remedies.ts'
import type { Check, Server } from '../report.ts'
import { within } from '../within.ts'

/** Whether the hub learns in time that a reader has left. */
export async function disconnectCheck(way: Way, server: Server): Promise<Check> {
  const name = 'disconnect'
  const { token, answer, hello } = await openProbe(way, 'silent')
  await within(hello(), waitForHelloMs)
  answer.close()
  const leftAt = performance.now()
  let seen: ProbeSeen = { state: 'unknown' }
  for (const [question, waitMs] of questionsMs.entries()) {
    await sleep(waitMs)
    seen = await ask(way, token, question)
    if (seen.state !== 'open') break
  }
  if (seen.state === 'unknown') {
    return { name, state: 'unknown', summary: 'another hub of the same address answered; ask one hub alone' }
  }
  const afterMs = Math.max(0, Math.round(performance.now() - leftAt - (seen.closedMsAgo ?? 0)))
  if (seen.state === 'closed' && afterMs <= inTimeMs) {
    return {
      name,
      state: 'good',
      summary: `the hub sees within ${afterMs} ms that a reader left`,
      figures: { afterMs },
    }
  }
  // Only a hint, because no reader misses an event by it.
  const summary = 'two seconds after a reader left, the hub still sends to it'
  return { name, state: 'hint', summary, remedy: remedyFor(name, server) }
}

/** Asks the hub about the probe. Each question has its own URL, so that no cache answers it. */
async function ask(way: Way, token: string, question: number): Promise<ProbeSeen> {
  const url = new URL(`${way.base}${probePath('seen', token)}/${question}`)
  const answer = await way.wire.open(url, { headers: { ...streamRequest, ...way.headers } })
  const { state, closedMsAgo } = Object(await jsonOf(answer)) as Partial<ProbeSeen>
  return { state: state ?? 'unknown', ...(closedMsAgo === undefined ? {} : { closedMsAgo: Number(closedMsAgo) }) }
}

const waitForHelloMs = 1500
const inTimeMs = 2000
const questionsMs = [50, 100, 200, 400, 800, 1000]
