import { setTimeout as sleep } from 'node:timers/promises'
import { type NodeSubjectName, startNode } from '../subjects/node.ts'
import { startLoad } from '../subjects/subject.ts'
import type { Measured } from './client.ts'

/** A server and its readers, started anew, to be measured at one rate of events after the other. */
export interface FanOut {
  /** At so many events per second. */
  step(offered: number): Promise<FanOutStep>
  stop(): Promise<void>
}

export async function openFanOut(server: NodeSubjectName, run: FanOutRun): Promise<FanOut> {
  const { readers, eventBytes, warmUpMs, ms } = run
  const load = startLoad()
  const subject = await startNode(server)
  const { port, tls, pids, readPath: path } = subject
  await load.call('connect', { port, tls, count: readers, path })
  return {
    async step(offered) {
      await subject.publish({ perSecond: offered, eventBytes, readers })
      await sleep(warmUpMs)
      const measured = await load.call('measure', { ms, serverPids: pids })
      await subject.stopPublishing()
      await load.call('settle', undefined)
      return { offered, ...measured }
    },
    async stop() {
      await subject.stop()
      await load.stop()
    },
  }
}

export interface FanOutRun {
  readonly readers: number
  readonly eventBytes: number
  readonly warmUpMs: number
  readonly ms: number
}

export type FanOutStep = Measured & { readonly offered: number }
