import { RejoinError } from './errors.ts'

/** Returns the name when it is a valid channel (§5.2). Otherwise throws `invalid-channel` and says what is wrong. */
export function checkChannel(name: unknown): string {
  const problem = problemOf(name, maxChannelBytes) ?? segmentProblem(name as string)
  if (problem === undefined) return name as string
  throw new RejoinError(`${shown(name)} is no channel: ${problem}. Name it like orders/42.`, {
    code: 'invalid-channel',
  })
}

/**
 * Returns the type when it is a valid event type (§5.3), reserved types included. Otherwise throws `invalid-type` and
 * says what is wrong.
 */
export function checkType(type: unknown): string {
  const problem = problemOf(type, maxTypeBytes)
  if (problem === undefined) return type as string
  throw new RejoinError(`${shown(type)} is no event type: ${problem}. Name it like order-shipped.`, {
    code: 'invalid-type',
  })
}

/** Types that belong to the protocol or to the browser (§4.8); nobody can publish one. */
export const reservedTypes = ['hello', 'sync-required', 'checkpoint', 'close', 'heartbeat', 'open', 'error'] as const

export function isReservedType(type: string): boolean {
  return (reservedTypes as readonly string[]).includes(type)
}

const maxChannelBytes = 256
const maxTypeBytes = 128

function problemOf(name: unknown, maxBytes: number): string | undefined {
  if (typeof name !== 'string') return 'it has to be a string'
  if (name === '') return 'it is empty'
  if (controlCharacter.test(name)) return 'it holds a control character'
  if (!name.isWellFormed()) return 'it is not valid Unicode'
  if (utf8Length(name) > maxBytes) return `it is over ${maxBytes} bytes`
  return undefined
}

function segmentProblem(name: string): string | undefined {
  if (name.includes('*')) return 'it holds a *, which only patterns may'
  // A regular expression, because splitting the name into segments took a twentieth of a publish.
  const [, segment] = lostSegment.exec(name) ?? []
  if (segment === undefined) return undefined
  return segment === '' ? 'it has an empty segment' : `the segment ${segment} would be lost on the way through a URL`
}

const lostSegment = /(?:^|\/)(\.{0,2})(?:\/|$)/

// C0, DEL and C1. Line breaks among them could forge a field, and none of these characters is visible.
const controlCharacter = /[\u0000-\u001f\u007f-\u009f]/

/** The bytes of well-formed text in UTF-8. A surrogate pair is two units of two bytes each: four together. */
function utf8Length(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    if (unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff)) bytes += 2
    else if (unit >= 0x80) bytes += 1
  }
  return bytes
}

/** Quotes, escapes and shortens a name for a message, because the name may be hostile. */
function shown(name: unknown): string {
  const text = typeof name === 'string' ? JSON.stringify(name.slice(0, 60)) : typeof name
  return typeof name === 'string' && name.length > 60 ? `${text}…` : text
}
