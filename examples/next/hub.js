import { createHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'

/**
 * The hub of this process. The first request opens it: `next build` and the workers of `next dev` load the routes too, and one
 * process alone can write to a folder. Modules that `next dev` loads again find the hub in `globalThis`.
 */
export function openHub() {
  globalThis.rejoinHub ??= open().catch((error) => {
    // Or no later request could open it.
    globalThis.rejoinHub = undefined
    throw error
  })
  return globalThis.rejoinHub
}

async function open() {
  const hub = await createHub({ log: lmdbLog('./.rejoin') })
  // `next start` waits for its streams, which never end by themselves, and for every connection that a client keeps in use.
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.once(signal, async () => {
      await hub.drain({ withinMs: 5000 })
      await hub.close()
      setTimeout(() => process.exit(), 1000)
    })
  }
  return hub
}
