import { checkSelector } from '@rejoin/protocol'
import { invalidOption } from '../errors.ts'

/**
 * Returns the patterns if each is a channel, a prefix such as `orders/*`, or `*`. Throws on anything else: a misspelt right
 * matches nothing, and its owner would look for the mistake everywhere but here.
 */
export function checkPatterns(patterns: unknown): readonly string[] {
  if (patterns === undefined) return []
  if (Array.isArray(patterns)) return patterns.map(checkSelector)
  throw invalidOption('Rights are a list of channels, such as ["orders/*", "news"].')
}
