import { crockfordAlphabet } from './crockford.ts'

/**
 * Names one branch of the log, in 8 upper-case characters of Crockford's base 32. A log that may have lost acknowledged
 * events starts a new branch, so a client that holds a·3 is told of a gap and is not handed b·4 as if it were the next
 * event.
 */
export type Epoch = string

/**
 * Draws the name of a new branch.
 *
 * @param random - like `Math.random`; two logs that draw the same numbers could not tell their ids apart
 */
export function createEpoch(random: () => number): Epoch {
  let epoch = ''
  for (let at = 0; at < 8; at++) epoch += crockfordAlphabet.charAt(Math.floor(random() * 32) & 31)
  return epoch
}

export function isEpoch(value: unknown): value is Epoch {
  return typeof value === 'string' && canonical.test(value)
}

const canonical = /^[0-9A-HJKMNP-TV-Z]{8}$/
