import { openProbe, type Way } from '../probe-client.ts'
import { remedyFor } from '../remedies.ts'
import type { Check, Server } from '../report.ts'
import type { Answer } from '../wire.ts'

/** Whether the stream is compressed for a client that accepts compression, as every browser does. */
export async function compressionCheck(way: Way, server: Server): Promise<Check> {
  const { answer } = await openProbe(way, 'spaced', { headers: acceptsCompressed })
  answer.close()
  return compressionOf(answer, server)
}

export function compressionOf({ headers }: Answer, server: Server): Check {
  const name = 'compression'
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (encoding === 'identity') return { name, state: 'good', summary: 'none, also for clients that could read it' }
  return { name, state: 'fault', summary: `the stream is compressed: ${encoding}`, remedy: remedyFor(name, server) }
}

export const acceptsCompressed = { 'accept-encoding': 'gzip, deflate, br' }
