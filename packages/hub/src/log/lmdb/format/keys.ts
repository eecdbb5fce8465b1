import type { Position } from '@rejoin/protocol'

/**
 * All keys of the store. The first byte tells their kind.
 *
 * - `A` + position + the channel's number: a channel whose events are all at or after that position, oldest first
 * - `B` marks a copy that no hub has opened yet
 * - `F` the format and the branches, `S` the state of the whole log
 * - `C` + name: a channel
 * - `E` + the channel's number + position: a record, the events of one channel in one commit
 * - `P` + position: the feed, with the channels that one commit touched
 * - `R` + the channel's number + key: the newest event of a key
 * - `I` + digest of scope and key: a publish made under an idempotency key; `O` + position: the same, oldest first
 * - `N` + tag of a scope: how many idempotency keys the scope has
 * - `V` + name: a text that the hub put there once, such as the use of a ticket
 * - `W` + number: an order of the hub to itself after a restart, such as a revocation
 */
export const copyMarkKey = Buffer.from('B')
export const formatKey = Buffer.from('F')
export const stateKey = Buffer.from('S')

export function channelKey(name: string): Buffer {
  return Buffer.from(`C${name}`)
}

export function channelOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset + 1, key.length - 1).toString()
}

/** Sorts after the keys of all channels. */
export const afterChannels = Buffer.from('D')

export function recordKey(channelNumber: number, position: Position): Buffer {
  const key = Buffer.allocUnsafe(1 + numberBytes + positionBytes)
  key[0] = 0x45
  key.writeUIntBE(channelNumber, 1, numberBytes)
  writePosition(key, position, 1 + numberBytes)
  return key
}

/** The position at the end of a key. In the key of a record, it is the position of the first event. */
export function positionOf(key: Uint8Array): Position {
  const bytes = Buffer.from(key.buffer, key.byteOffset + key.length - positionBytes, positionBytes)
  return { ms: bytes.readUIntBE(0, 6), seq: (bytes[6] as number) * 2 ** 48 + bytes.readUIntBE(7, 6) }
}

export function ageKey(position: Position, channelNumber: number): Buffer {
  const key = Buffer.allocUnsafe(1 + positionBytes + numberBytes)
  key[0] = 0x41
  writePosition(key, position, 1)
  key.writeUIntBE(channelNumber, 1 + positionBytes, numberBytes)
  return key
}

/** The position in a key of the order of age. */
export function agedPositionOf(key: Uint8Array): Position {
  return positionOf(key.subarray(0, 1 + positionBytes))
}

/** The channel's number in a key of the order of age. */
export function agedNumberOf(key: Buffer): number {
  return key.readUIntBE(1 + positionBytes, numberBytes)
}

export const ageRange = { start: Buffer.from('A'), end: Buffer.from('B') }

export function feedKey(position: Position): Buffer {
  return positionKey(0x50, position)
}

export const feedRange = { start: Buffer.from('P'), end: Buffer.from('Q') }

export function retainedKey(channelNumber: number, key: string): Buffer {
  return Buffer.concat([retainedPrefix(channelNumber), Buffer.from(key)])
}

export function retainedRange(channelNumber: number): { start: Buffer; end: Buffer } {
  return { start: retainedPrefix(channelNumber), end: retainedPrefix(channelNumber + 1) }
}

export function retainedKeyOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset + 1 + numberBytes, key.length - 1 - numberBytes).toString()
}

function retainedPrefix(channelNumber: number): Buffer {
  const prefix = Buffer.allocUnsafe(1 + numberBytes)
  prefix[0] = 0x52
  prefix.writeUIntBE(channelNumber, 1, numberBytes)
  return prefix
}

export function onceKey(digest: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from('I'), digest])
}

export function onceOrderKey(position: Position): Buffer {
  return positionKey(0x4f, position)
}

export function onceCountKey(tag: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from('N'), tag])
}

export const onceOrderRange = { start: Buffer.from('O'), end: Buffer.from('P') }

export function valueKey(name: string): Buffer {
  return Buffer.from(`V${name}`)
}

/** The name in the key of a text. */
export function nameOf(key: Uint8Array): string {
  return channelOf(key)
}

export const valueRange = { start: Buffer.from('V'), end: Buffer.from('W') }

export function orderKey(number: number): Buffer {
  const key = Buffer.allocUnsafe(1 + numberBytes)
  key[0] = 0x57
  key.writeUIntBE(number, 1, numberBytes)
  return key
}

export function orderNumberOf(key: Buffer): number {
  return key.readUIntBE(1, numberBytes)
}

export const orderRange = { start: Buffer.from('W'), end: Buffer.from('X') }

// Room for a million new channels a second, for twelve days.
const numberBytes = 5
// 48 bits of milliseconds, and the 53 bits that the largest `seq` of any codec needs.
const positionBytes = 13

function positionKey(kind: number, position: Position): Buffer {
  const key = Buffer.allocUnsafe(1 + positionBytes)
  key[0] = kind
  writePosition(key, position, 1)
  return key
}

function writePosition(key: Buffer, { ms, seq }: Position, at: number): void {
  key.writeUIntBE(ms, at, 6)
  // A buffer writes at most six bytes of a number at once.
  key[at + 6] = Math.floor(seq / 2 ** 48)
  key.writeUIntBE(seq % 2 ** 48, at + 7, 6)
}
