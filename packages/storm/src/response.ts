/** Parses an HTTP/1.1 answer from a raw socket, given as latin1. A storm publishes ASCII only, so nothing has to be decoded. */
export interface Response {
  feed(text: string): void
  /** Whether the answer came to its announced end. */
  readonly isWhole: boolean
}

export interface ResponseEvents {
  onHead(head: ResponseHead): void
  onBody(text: string): void
}

export interface ResponseHead {
  readonly status: number
  /** The headers, by their names in lower case. */
  readonly headers: ReadonlyMap<string, string>
}

export function createResponse({ onHead, onBody }: ResponseEvents): Response {
  let part: 'head' | 'size' | 'chunk' | 'rest' | 'whole' = 'head'
  let held = ''
  let left = 0
  let chunked = false

  function feed(text: string): void {
    let at = 0
    while (at < text.length && part !== 'whole')
      at = part === 'chunk' || part === 'rest' ? body(text, at) : line(text, at)
  }

  /** Reads the head, or the line with the size of a chunk. Returns where the rest of the text begins. */
  function line(text: string, at: number): number {
    const end = part === 'head' ? '\r\n\r\n' : '\r\n'
    const before = held.length
    held += text.slice(at)
    const endAt = held.indexOf(end, Math.max(0, before - end.length))
    if (endAt === -1) {
      if (held.length > maxHeadLength) throw new Error('the head of the answer is too long')
      return text.length
    }
    const whole = held.slice(0, endAt)
    held = ''
    if (part === 'head') head(whole)
    else size(whole)
    return at + endAt + end.length - before
  }

  function head(text: string): void {
    const [first = '', ...lines] = text.split('\r\n')
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(first)?.[1])
    if (!(status > 0)) throw new Error('the answer is not HTTP/1.1')
    const headers = new Map(lines.map((each) => [nameOf(each), each.slice(each.indexOf(':') + 1).trim()]))
    chunked = /\bchunked$/i.test(headers.get('transfer-encoding') ?? '')
    left = Number(headers.get('content-length') ?? Number.POSITIVE_INFINITY)
    part = chunked ? 'size' : left === 0 ? 'whole' : 'rest'
    onHead({ status, headers })
  }

  function size(text: string): void {
    // The line break after the bytes of a chunk shows up as an empty line here.
    if (text === '') return
    left = Number.parseInt(text, 16)
    if (!(left >= 0)) throw new Error('a chunk of the answer has no size')
    part = left === 0 ? 'whole' : 'chunk'
  }

  function body(text: string, at: number): number {
    const end = Math.min(text.length, at + left)
    left -= end - at
    if (left === 0) part = chunked ? 'size' : 'whole'
    onBody(text.slice(at, end))
    return end
  }

  return {
    feed,
    get isWhole() {
      return part === 'whole'
    },
  }
}

const maxHeadLength = 64 * 1024

function nameOf(line: string): string {
  return line.slice(0, Math.max(0, line.indexOf(':'))).toLowerCase()
}
