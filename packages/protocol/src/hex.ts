/** The 4 lower-case digits of a 16-bit integer. */
export function hex16(value: number): string {
  return bytes[value >>> 8]! + bytes[value & 255]!
}

/** The 8 lower-case digits of a 32-bit integer. */
export function hex32(value: number): string {
  return hex16(value >>> 16) + hex16(value & 0xffff)
}

/** The 12 lower-case digits of a 48-bit integer. */
export function hex48(value: number): string {
  return hex32(Math.floor(value / 2 ** 16)) + hex16(value & 0xffff)
}

/** The integer in `text` from `start` to `end`. Test first that these are lower-case hex digits. */
export function decodeHex(text: string, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    // Digits stand at 48 to 57, a to f at 97 to 102.
    value = value * 16 + (code < 58 ? code - 48 : code - 87)
  }
  return value
}

const bytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
