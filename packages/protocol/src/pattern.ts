import { RejoinError } from './errors.ts'
import { checkChannel } from './names.ts'

/**
 * Whether a selector covers another selector or a channel (§5.2). `orders/*` covers every channel and every pattern
 * below `orders/`, `*` covers everything, and a channel covers itself only. The cost is linear in the length for every
 * pattern, because the star can only stand at the end.
 */
export function covers(selector: string, other: string): boolean {
  return isPattern(selector) ? other.startsWith(prefixOf(selector)) : selector === other
}

/**
 * Returns the selector when it is a valid channel or pattern. Otherwise throws `invalid-channel` and says what is
 * wrong.
 */
export function checkSelector(selector: unknown): string {
  if (selector === '*') return selector
  if (typeof selector !== 'string' || !selector.includes('*')) return checkChannel(selector)
  if (selector.endsWith('/*') && selector.indexOf('*') === selector.length - 1) {
    checkChannel(selector.slice(0, -2))
    return selector
  }
  throw new RejoinError(
    `${JSON.stringify(selector.slice(0, 60))} is no pattern: a * may only stand alone or after the last slash. Write it like orders/*.`,
    { code: 'invalid-channel' },
  )
}

export function isPattern(selector: string): boolean {
  return selector.endsWith('*')
}

/** The text that all channels of a pattern start with; '' for `*`. */
export function prefixOf(pattern: string): string {
  return pattern.slice(0, -1)
}

/**
 * The entry of a channel in a table of channels and patterns: its own, else that of the narrowest pattern that covers
 * it.
 */
export function narrowestOf<Value>(table: ReadonlyMap<string, Value>, channel: string): Value | undefined {
  let found = table.get(channel)
  // The narrowest pattern comes last.
  if (found === undefined) for (const pattern of patternsOver(channel)) found = table.get(pattern) ?? found
  return found
}

/** Every pattern that covers a channel, the widest first. */
export function* patternsOver(channel: string): Generator<string> {
  yield '*'
  for (let slash = channel.indexOf('/'); slash !== -1; slash = channel.indexOf('/', slash + 1)) {
    yield `${channel.slice(0, slash)}/*`
  }
}
