import { isAfter, isPattern, prefixOf } from '@rejoin/protocol'
import type { LogEvent } from '../contract.ts'
import { parseEvents } from './entry.ts'
import type { Ask } from './registry.ts'

/** The newest event of each key, oldest first. Undefined when there are too many to be read at once. */
export async function retainedOf(ask: Ask, selectors: readonly string[]): Promise<readonly LogEvent[] | undefined> {
  const asked = selectors.map((selector) => (isPattern(selector) ? `*${prefixOf(selector)}` : selector))
  const [found, flat] = await ask('retained', ...asked)
  if (found === 'unknown') return undefined
  return parseEvents(flat as string[]).sort((a, b) => (isAfter(a.position, b.position) ? 1 : -1))
}
