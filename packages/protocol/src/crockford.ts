/** Crockford's base 32: no I, L, O or U, so that a person can read an id aloud. Upper case is the canonical form. */
export const crockfordAlphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** The 2 characters of a 10-bit integer. */
export function encode10(value: number): string {
  return pairs[value]!
}

/** The 8 characters of a 40-bit integer. */
export function encode40(value: number): string {
  const high = Math.floor(value / 2 ** 20)
  const low = value & 0xfffff
  return pairs[high >>> 10]! + pairs[high & 1023]! + pairs[low >>> 10]! + pairs[low & 1023]!
}

/** The 10 characters of a 48-bit integer; the first is at most 7. */
export function encode48(value: number): string {
  const high = Math.floor(value / 2 ** 40)
  return pairs[high]! + encode40(value - high * 2 ** 40)
}

/** The integer in `text` from `start` to `end`. Test first that these are characters of the alphabet. */
export function decodeCrockford(text: string, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at++) value = value * 32 + digits[text.charCodeAt(at)]!
  return value
}

// Two characters per look-up: half as many look-ups and joins as with one.
const pairs = Array.from(crockfordAlphabet, (a) => Array.from(crockfordAlphabet, (b) => a + b)).flat()

const digits = new Uint8Array(128)
for (let digit = 0; digit < 32; digit++) digits[crockfordAlphabet.charCodeAt(digit)] = digit
