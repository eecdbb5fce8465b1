import { RejoinError } from './errors.ts'
import { isIdText } from './id-text.ts'
import { longestTimerMs } from './longest-timer.ts'

export interface OutgoingEvent {
  /** Without an id, the frame does not move the reader's cursor. */
  readonly id?: string | undefined
  /** `message` is sent without an `event` line, because it is the default of every reader. */
  readonly type: string
  readonly data: string
  /** Without it, the data is JSON (§4.16). */
  readonly content?: 'text' | undefined
}

/**
 * Renders one whole frame (§4.3). Throws `invalid-event` for text that is no id (§2.6), and for a type that is empty or
 * would break out of its line.
 */
export function encodeEvent({ id, type, data, content }: OutgoingEvent): string {
  let frame = ''
  if (id !== undefined) {
    if (!isIdText(id)) throw brokenField('id', id)
    frame = `id: ${id}\n`
  }
  if (type !== 'message') {
    if (type !== checkedType) checkType(type)
    frame += `event: ${type}\n`
  }
  if (content !== undefined) frame += 'content: text\n'
  return `${frame}data: ${onDataLines(data)}\n\n`
}

// The type that passed the check last. Most events in a row have the same type.
let checkedType = 'message'

function checkType(type: string): void {
  if (type === '' || lineBreaker.test(type)) throw brokenField('type', type)
  checkedType = type
}

/** A comment. Readers ignore it, and proxies take it as a sign of life. */
export function encodeComment(text: string): string {
  if (lineBreaker.test(text)) throw brokenField('comment', text)
  return `: ${text}\n\n`
}

/** Tells the reader how long to wait before it returns. The line takes effect without an event. */
export function encodeRetry(ms: number): string {
  if (!Number.isInteger(ms) || ms < 0 || ms > longestTimerMs) {
    throw new RejoinError(`A retry of ${ms} ms cannot be sent. Give a whole number from 0 to ${longestTimerMs}.`, {
      code: 'invalid-event',
    })
  }
  return `retry: ${ms}\n`
}

function onDataLines(data: string): string {
  // Most data is one line of JSON. Two native searches are faster than a regular expression.
  if (!data.includes('\n') && !data.includes('\r')) return data
  return data.replace(/\r\n|\r|\n/g, '\ndata: ')
}

/**
 * Data as a log keeps it (§5.4): LF line ends and well-formed Unicode, so that every transport and every reader gets the same
 * text. An event stream cannot carry a CR, and UTF-8 cannot carry half a surrogate pair.
 */
export function normaliseData(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed()
  return wellFormed.includes('\r') ? wellFormed.replace(/\r\n?/g, '\n') : wellFormed
}

const lineBreaker = /[\r\n\0]/

function brokenField(field: 'id' | 'type' | 'comment', value: string): RejoinError {
  return new RejoinError(`${JSON.stringify(value.slice(0, 60))} cannot be sent as ${advice[field]}`, {
    code: 'invalid-event',
  })
}

const advice = {
  id: 'an id. Ids are 1 to 128 printable ASCII characters, no spaces, none of "():<>?@[\\]{}, among them: encode it first.',
  type: 'a type: it is empty or holds a CR, LF or NUL, which would break out of its line. Put such text into the data.',
  comment: 'a comment: it holds a CR, LF or NUL, which would break out of its line. Send one comment per line.',
}
