import { crc32 } from 'node:zlib'
import type { Position } from '@rejoin/protocol'

/** Writes numbers, positions and texts one after the other; a small number takes few bytes. One writer serves many values. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(4096)
  #length = 0

  /** A whole number from 0 to 2^53 - 1, seven bits to a byte, the lowest first. */
  number(value: number): void {
    if (this.#length + 8 > this.#bytes.length) this.#grow(8)
    let rest = value
    // Bit operations work on 31 bits only, and a time in milliseconds needs 41.
    while (rest >= 0x4000_0000) {
      this.#bytes[this.#length++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    while (rest > 127) {
      this.#bytes[this.#length++] = (rest & 127) | 128
      rest >>>= 7
    }
    this.#bytes[this.#length++] = rest
  }

  /** A whole number of either sign. A number near 0 stays short. */
  signed(value: number): void {
    this.number(value < 0 ? -2 * value - 1 : 2 * value)
  }

  position({ ms, seq }: Position): void {
    this.number(ms)
    this.number(seq)
  }

  text(value: string): void {
    const bytes = Buffer.byteLength(value)
    this.number(bytes)
    if (this.#length + bytes > this.#bytes.length) this.#grow(bytes)
    this.#length += this.#bytes.write(value, this.#length)
  }

  /** Everything that was written since the last call, then `body`, with a checksum in front. {@link unseal} opens it. */
  seal(key: Uint8Array, body = ''): Buffer {
    const start = checksumBytes + this.#length
    const sealed = Buffer.allocUnsafe(start + Buffer.byteLength(body))
    this.#bytes.copy(sealed, checksumBytes, 0, this.#length)
    sealed.write(body, start)
    sealed.writeUInt32LE(checksum(key, sealed), 0)
    this.#length = 0
    return sealed
  }

  #grow(by: number): void {
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + by)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

/** Reads the values that a {@link ByteWriter} wrote, in the same order. */
export class ByteReader {
  readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length
  }

  number(): number {
    let byte = this.bytes[this.at++] as number
    if (byte < 128) return byte
    let value = byte & 127
    let unit = 128
    do {
      byte = this.bytes[this.at++] as number
      value += (byte & 127) * unit
      unit *= 128
    } while (byte >= 128)
    return value
  }

  signed(): number {
    const value = this.number()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  position(): Position {
    return { ms: this.number(), seq: this.number() }
  }

  text(): string {
    const bytes = this.number()
    const start = this.at
    this.at += bytes
    return this.bytes.toString('utf8', start, this.at)
  }
}

const checksumBytes = 4

/** A reader of a value that was sealed under this key; undefined when a bit of the value or of the key has changed. */
export function unseal(key: Uint8Array, sealed: Buffer): ByteReader | undefined {
  if (sealed.length < checksumBytes || sealed.readUInt32LE(0) !== checksum(key, sealed)) return undefined
  return new ByteReader(sealed, checksumBytes)
}

/** The checksum covers the key as well: a value that turns up under another key is as wrong as a changed value. */
function checksum(key: Uint8Array, sealed: Buffer): number {
  return crc32(sealed.subarray(checksumBytes), crc32(key))
}
