import { checkPatches } from './mutant-plugin.ts'
import { mutants } from './mutants.ts'
import type { Parts, SimulateOptions } from './simulate.ts'

/** The hub and the client of a mutant, each with a copy of all that it imports. */
export async function partsOf(name: string): Promise<Pick<SimulateOptions, 'parts' | 'flaw'>> {
  const { flaw, patches } = mutants.find((mutant) => mutant.name === name) ?? {}
  if (!patches) return { flaw }
  checkPatches(patches)
  // Held in variables, so that neither the compiler nor the bundler looks for them on disk.
  const [hub, client] = [`@rejoin/hub?mutant=${name}`, `@rejoin/client?mutant=${name}`]
  const parts: Parts = { ...(await import(/* @vite-ignore */ hub)), ...(await import(/* @vite-ignore */ client)) }
  return { parts, flaw }
}
