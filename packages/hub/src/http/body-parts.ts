import { tooLarge } from './answer.ts'

/** The bytes of a body that have arrived so far. */
export interface BodyParts {
  /** @throws RejoinError when this many bytes are more than allowed */
  expect(bytes: number): void
  /** @throws RejoinError when the body has become larger than allowed */
  add(part: Uint8Array): void
  /** All bytes, in one piece. */
  joined(): Uint8Array
  /** Frees the memory of all parts. */
  clear(): void
}

/**
 * Each part takes about 200 bytes besides its content. A body that arrives byte by byte would take two hundred times its length, so
 * every 256 parts are joined into one. Joined parts are not joined again before the end: that would copy a long body over and over.
 */
export function createBodyParts(maxBytes: number): BodyParts {
  let joined: Uint8Array[] = []
  let newest: Uint8Array[] = []
  let length = 0

  function expect(bytes: number): void {
    if (bytes > maxBytes) throw tooLarge(maxBytes)
  }

  return {
    expect,
    add(part) {
      length += part.length
      expect(length)
      newest.push(part)
      if (newest.length < maxNewest) return
      joined.push(Buffer.concat(newest))
      newest = []
    },
    joined() {
      const all = [...joined, ...newest]
      return all.length === 1 ? (all[0] as Uint8Array) : Buffer.concat(all, length)
    },
    clear() {
      joined = []
      newest = []
    },
  }
}

const maxNewest = 256
