import { RejoinError } from './errors.ts'
import { isIdText } from './id-text.ts'

/** An event on its way out. */
export interface OutgoingEvent {
  /** Left out, the frame does not move the reader's cursor. */
  readonly id?: string
  /** `message` is the default of every reader, and stands for no `event` line. */
  readonly type: string
  readonly data: string
}

/** One whole frame (§4.3). Throws `invalid-event` for an id or a type that would break out of its line. */
export function encodeEvent({ id, type, data }: OutgoingEvent): string {
  let frame = ''
  if (id !== undefined) {
    if (!isIdText(id)) throw brokenField('id', id)
    frame = `id: ${id}\n`
  }
  if (type !== 'message') {
    if (type === '' || lineBreaker.test(type)) throw brokenField('event', type)
    frame += `event: ${type}\n`
  }
  return `${frame}data: ${onDataLines(data)}\n\n`
}

/** A comment, which readers ignore and proxies count as life. */
export function encodeComment(text: string): string {
  if (lineBreaker.test(text)) throw brokenField('comment', text)
  return `: ${text}\n\n`
}

/** What a reader is to wait before it comes back. As a field of its own it takes effect without an event. */
export function encodeRetry(ms: number): string {
  if (!Number.isSafeInteger(ms) || ms < 0) {
    throw new RejoinError(`A retry of ${ms} is no whole number of milliseconds from 0 up.`, { code: 'invalid-event' })
  }
  return `retry: ${ms}\n`
}

function onDataLines(data: string): string {
  // Most data is one line of JSON: two searches of native speed instead of a regular expression.
  if (!data.includes('\n') && !data.includes('\r')) return data
  return data.replace(/\r\n|\r|\n/g, '\ndata: ')
}

const lineBreaker = /[\r\n\0]/

function brokenField(field: string, value: string): RejoinError {
  const shown = JSON.stringify(value.slice(0, 60))
  return new RejoinError(
    field === 'id'
      ? `${shown} cannot be an event id. Ids are 1 to 128 printable ASCII characters without spaces; encode it first.`
      : `${shown} cannot stand in ${field === 'event' ? 'an event type' : 'a comment'}: it is empty or breaks its line.`,
    { code: 'invalid-event' },
  )
}
