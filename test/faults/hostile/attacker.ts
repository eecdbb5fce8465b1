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
  await Promise.all([
    stopped(stop),
    ...attacks.filter(({ name }) => names.includes(name)).map((attack) => attack.run(target, stop)),
  ])
  process.exit()
})
function stopped(stop: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }))
}

process.once('disconnect', () => process.exit())
