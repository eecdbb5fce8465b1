import { setTimeout as sleep } from 'node:timers/promises'
import { type NodeSubjectName, startNode } from '../subjects/node.ts'
import { startLoad } from '../subjects/subject.ts'
import type { Measured } from './client.ts'

/** A server and its readers, started anew, and measured at one rate of events after the other. */
export async function fanOutSteps(server: NodeSubjectName, run: FanOutRun): Promise<FanOutStep[]> {
  const { readers, eventBytes, rates, warmUpMs, ms } = run
  const load = startLoad()
  const subject = await startNode(server)
  const { port, tls, pids, readPath: path } = subject
  const steps: FanOutStep[] = []
  await load.call('connect', { port, tls, count: readers, path })
  for (const offered of rates) {
    await subject.publish({ perSecond: offered, eventBytes, readers })
    await sleep(warmUpMs)
    steps.push({ offered, ...(await load.call('measure', { ms, serverPids: pids })) })
    await subject.stopPublishing()
    await load.call('settle', undefined)
  }
  await subject.stop()
  await load.stop()
  return steps
}

export interface FanOutRun {
  readonly readers: number
  readonly eventBytes: number
  /** Events per second. */
  readonly rates: readonly number[]
  readonly warmUpMs: number
  readonly ms: number
}

export type FanOutStep = Measured & { readonly offered: number }
