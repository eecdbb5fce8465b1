import { RejoinError } from './errors.ts'
import { checkChannel } from './names.ts'

/**
 * Whether one name of a subscription or a grant covers another (§5.2): `orders/*` covers every channel and every pattern
 * below `orders/`, `*` covers all, a channel itself only. Linear in the length, whatever the pattern: there is one kind of
 * star, and it stands at the end.
 */
export function covers(name: string, other: string): boolean {
  return isPattern(name) ? other.startsWith(prefixOf(name)) : name === other
}

/** The channel or pattern, when it is one. Throws `invalid-channel` with what is wrong. */
export function checkName(name: unknown): string {
  if (name === '*') return name
  if (typeof name !== 'string' || !name.includes('*')) return checkChannel(name)
  if (name.endsWith('/*') && name.indexOf('*') === name.length - 1) {
    checkChannel(name.slice(0, -2))
    return name
  }
  throw new RejoinError(
    `${JSON.stringify(name.slice(0, 60))} is no pattern: a * may only stand alone or after the last slash. Write it like orders/*.`,
    { code: 'invalid-channel' },
  )
}

/** Of a name that is a channel or a pattern. */
export function isPattern(name: string): boolean {
  return name.endsWith('*')
}

/** What all channels of a pattern start with, '' for all channels. */
export function prefixOf(pattern: string): string {
  return pattern.slice(0, -1)
}

/** Every pattern that covers a channel, the widest first. */
export function* patternsOver(channel: string): Generator<string> {
  yield '*'
  for (let slash = channel.indexOf('/'); slash !== -1; slash = channel.indexOf('/', slash + 1)) {
    yield `${channel.slice(0, slash)}/*`
  }
}
