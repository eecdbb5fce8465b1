import { setMaxListeners } from 'node:events'
import type { Target } from './attack.ts'
import { attacks } from './attacks.ts'

/** What an attacker is told. It ends by itself when it is done, or when nobody is there any more who could tell it. */
export interface Order {
  readonly target: Target
  /** Which attacks, all of them at the same time. */
  readonly names: readonly string[]
  readonly forMs: number
}

process.once('message', async ({ target, names, forMs }: Order) => {
  const stop = AbortSignal.timeout(forMs)
  // Each attack listens to it.
  setMaxListeners(0, stop)
  const over = stopped(stop)
  const chosen = attacks.filter(({ name }) => names.includes(name))
  // Requests that are not answered yet end with the process.
  const grace = over.then(() => new Promise((resolve) => setTimeout(resolve, graceMs)))
  await Promise.race([grace, Promise.all([over, ...chosen.map((attack) => attack.run(target, stop))])])
  process.exit()
})

const graceMs = 500

function stopped(stop: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }))
}

process.once('disconnect', () => process.exit())
