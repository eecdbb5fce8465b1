import { checkPatches } from './mutant-plugin.ts'
import { mutants } from './mutants.ts'
import type { Parts, SimulateOptions } from './simulate.ts'

/** The hub and the client of a mutant, each with a copy of all that it imports. */
export async function partsOf(name: string): Promise<Pick<SimulateOptions, 'parts' | 'flaw'>> {
  const { flaw, patches } = mutants.find((mutant) => mutant.name === name) ?? {}
  if (!patches) return { flaw }
  checkPatches(patches)
  // Held in variables, so that neither the compiler nor the bundler looks for them on disk.
  const sources = ['@rejoin/hub', '../../packages/hub/src/internal.ts', '@rejoin/client'].map(
    (source) => `${source}?mutant=${name}`,
  )
  const loaded = await Promise.all(sources.map((source) => import(/* @vite-ignore */ source)))
  const parts: Parts = Object.assign({}, ...loaded)
  return { parts, flaw }
}
