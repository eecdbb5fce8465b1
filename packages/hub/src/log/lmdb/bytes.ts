import { crc32 } from 'node:zlib'
import type { Position } from '@rejoin/protocol'

/** Writes numbers, positions and text one after the other, small ones in few bytes. Made to be used again and again. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(4096)
  #length = 0

  /** A whole number from 0 to 2^53 - 1, seven bits to a byte, the lowest first. */
  number(value: number): void {
    if (this.#length + 8 > this.#bytes.length) this.#grow(8)
    let rest = value
    // Bit operations are good for 31 bits only; a millisecond needs 41.
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

  /** A whole number of either sign; those near 0 stay short. */
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

  /** What was written since the last call, followed by `body`, as {@link unseal} takes it back. */
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

/** Reads what a {@link ByteWriter} has written, in the same order. */
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

/** A reader of what was sealed under this key; undefined when a bit of either has changed since. */
export function unseal(key: Uint8Array, sealed: Buffer): ByteReader | undefined {
  if (sealed.length < checksumBytes || sealed.readUInt32LE(0) !== checksum(key, sealed)) return undefined
  return new ByteReader(sealed, checksumBytes)
}

/** The key is part of it: a value that turns up under another key is as wrong as a changed one. */
function checksum(key: Uint8Array, sealed: Buffer): number {
  return crc32(sealed.subarray(checksumBytes), crc32(key))
}
