import { isUtf8 } from 'node:buffer'

/**
 * Takes a stream apart by the letter of §4.3, and complains about everything else: it is here to see what a hub writes,
 * not to make the best of it. A frame counts at its blank line, never before.
 */
export function createStrictFrames({ onFrame, onMalformed }: StrictFramesOptions): StrictFrames {
  let rest: Buffer = Buffer.alloc(0)
  return {
    feed(bytes) {
      const all = rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([rest, bytes])
      const last = all.lastIndexOf('\n\n')
      if (last === -1) {
        rest = all
        return
      }
      rest = all.subarray(last + 2)
      if (!isUtf8(all.subarray(0, last))) onMalformed('bytes that are not UTF-8', all.toString('latin1', 0, 200))
      for (const block of all.toString('utf8', 0, last).split('\n\n')) {
        const frame = readBlock(block)
        if (typeof frame === 'string') onMalformed(frame, block.slice(0, 200))
        else onFrame(frame)
      }
    },
    partial() {
      if (rest.length === 0) return undefined
      return { id: /^id: ([^\n]*)/m.exec(rest.toString('utf8'))?.[1] ?? null }
    },
  }
}

export interface StrictFramesOptions {
  onFrame(frame: StrictFrame): void
  onMalformed(why: string, text: string): void
}

export interface StrictFrames {
  feed(bytes: Uint8Array): void
  /** What is left when the stream ends inside a frame: its id, as far as it came, or null. */
  partial(): { readonly id: string | null } | undefined
}

export interface StrictFrame {
  /** `message` when the frame names none; undefined for a comment. */
  readonly type: string | undefined
  readonly id: string | undefined
  readonly data: string
  readonly retryMs: number | undefined
}

/** The frame, or what is wrong with it. */
function readBlock(block: string): StrictFrame | string {
  if (/[\r\0]/.test(block)) return 'a CR or NUL in the stream'
  const lines = block.split('\n')
  // A heartbeat may carry a new `retry` (§4.11).
  const heartbeat = /^(?:retry: (\d+)\n)?: [^\n]*$/.exec(block)
  if (heartbeat) return { type: undefined, id: undefined, data: '', retryMs: numberOf(heartbeat[1]) }
  const fields = lines.map((line) => /^(retry|id|event|content|data): (.*)$/.exec(line))
  if (fields.includes(null)) return 'a line that is no field of the protocol'
  const names = fields.map((field) => field?.[1] ?? '')
  const isInOrder = /^(retry )?(id )?(event )?(content )?(data )+$/.test(`${names.join(' ')} `)
  if (!isInOrder) return 'fields in another order, or doubled'
  const valuesOf = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ''] : []))
  const [retry] = valuesOf('retry')
  const [id] = valuesOf('id')
  const [type = 'message'] = valuesOf('event')
  if (retry !== undefined && !/^\d+$/.test(retry)) return 'a retry that is no number'
  if (id !== undefined && !/^[!#-'*+\-./-9;=A-Z^-z|~]{1,128}$/.test(id)) return 'an id that could not be sent back'
  const [content] = valuesOf('content')
  if (content !== undefined && content !== 'text') return 'a content that is not text'
  if (content !== undefined && protocolTypes.includes(type)) return 'a frame of the protocol as text'
  if (id === undefined && !protocolTypes.includes(type)) return 'an event without an id'
  return { type, id, data: valuesOf('data').join('\n'), retryMs: numberOf(retry) }
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

/** The types of §4.8, which no publisher may use. */
export const protocolTypes = ['hello', 'sync-required', 'checkpoint', 'close', 'heartbeat', 'open', 'error']
