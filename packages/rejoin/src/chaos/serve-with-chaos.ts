import type { MemoryLogOptions } from '@rejoin/hub/memory'
import { type ServeOptions, type Serving, serveWith } from '../serve.ts'
import { type Chaos, createChaos } from './chaos.ts'

export const chaosWarning =
  '--chaos is on: every program on this machine can cut streams, take rights back and lose events at /chaos. Only for tests.'

/** Like `serve`, for tests that order troubles at `/chaos`. Events are kept in memory, and outlive the ordered restarts. */
export async function serveWithChaos(options: ServeOptions, memory: MemoryLogOptions): Promise<Serving> {
  let restarting = Promise.resolve()
  let isClosed = false
  const chaos: Chaos = createChaos(memory, (between) => {
    restarting = restarting.then(async () => {
      if (isClosed) return
      await serving.close({ withinMs: 0 })
      await between()
      serving = await serveWith({ ...options, port: Number(new URL(url).port) }, chaos)
    })
  })
  let serving = await serveWith(options, chaos)
  const { url, adminUrl } = serving

  return {
    url,
    get hub() {
      return serving.hub
    },
    ...(adminUrl && { adminUrl }),
    async close(given) {
      isClosed = true
      await restarting
      await serving.close(given)
      await chaos.log.lose()
    },
  }
}
