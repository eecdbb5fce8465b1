import { isAfter, type Position } from '@rejoin/protocol'
import type { Log } from '../log/contract.ts'
import type { VirtualEnvironment } from './virtual-environment.ts'

/**
 * Makes `settle` wait for tails, too. The tail of a log in this process has everything when `settle` is over. A tail over a
 * connection needs real time, which virtual time does not cover.
 */
export function settleTails(environment: VirtualEnvironment): { watch(log: Log): void } {
  const watched: { log: Log; delivered: Position }[] = []
  const { settle } = environment

  environment.settle = async () => {
    await settle()
    const deadline = performance.now() + patienceMs
    while ((await isBehind()) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 1))
      await settle()
    }
  }

  async function isBehind(): Promise<boolean> {
    const behind = await Promise.all(
      watched.map(async ({ log, delivered }) => isAfter(await log.head().catch(() => delivered), delivered)),
    )
    return behind.includes(true)
  }

  return {
    watch(log) {
      const follow = log.tail.bind(log)
      log.tail = async (after, onBatch) => {
        const entry = { log, delivered: after }
        watched.push(entry)
        const tail = await follow(after, (batch) => {
          entry.delivered = batch.events.at(-1)?.position ?? batch.after
          onBatch(batch)
        })
        const close = () => {
          watched.splice(watched.indexOf(entry), 1)
          tail.close()
        }
        return { close }
      }
    },
  }
}

// A tail that is behind after this time stays behind. The duty then fails on the missing events.
const patienceMs = 5000
