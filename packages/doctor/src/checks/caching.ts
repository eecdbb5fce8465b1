import { newToken, openProbe, type Way } from '../probe-client.ts'
import { remedyFor } from '../remedies.ts'
import type { Check, Server } from '../report.ts'
import { within } from '../within.ts'

/**
 * Whether three clients with the same request get three answers. The second client asks while the first one reads, because a
 * cache may share that answer. The third asks when the first answer has ended, because a cache may have kept it.
 */
export async function cachingCheck(way: Way, server: Server): Promise<Check> {
  const name = 'caching'
  const token = newToken()
  const first = await openProbe(way, 'spaced', { token })
  await within(first.hello(), joinAfterMs)
  const second = await openProbe(way, 'spaced', { token })
  await first.reading.ended
  const third = await openProbe(way, 'spaced', { token })
  const serials = (await Promise.all([first, second, third].map((probe) => probe.hello()))).map(
    (hello) => hello?.serial,
  )
  second.answer.close()
  third.answer.close()
  if (serials.includes(undefined))
    return { name, state: 'unknown', summary: 'a stream broke off before it could be told' }
  if (new Set(serials).size === serials.length) {
    return { name, state: 'good', summary: 'each client gets an answer of its own' }
  }
  return { name, state: 'fault', summary: 'two clients got the same answer', remedy: remedyFor(name, server) }
}

// The second client asks after this time even if a proxy holds the first frame back.
const joinAfterMs = 1000
