/**
 * The rules of the standard in their own order and words, slow and without state between calls: what the parser is
 * compared with. https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 *
 * The one place where it departs from the text is the one where engines and the platform's tests do too: the id buffer
 * starts with the last event id (§6).
 */
export function specParse(stream: string, lastEventId = ''): { seen: Seen[]; lastEventId: string } {
  const seen: Seen[] = []
  let idBuffer = lastEventId
  let typeBuffer = ''
  let dataBuffer = ''
  let blockHasId = false

  const text = stream.startsWith('\uFEFF') ? stream.slice(1) : stream
  const lines = text.split(/\r\n|\n|\r/)
  // What follows the last line end is not a line; nor does the end of the stream dispatch anything.
  lines.pop()

  for (const line of lines) {
    if (line === '') dispatch()
    else if (line.startsWith(':')) seen.push({ comment: withoutSpace(line.slice(1)) })
    else if (line.includes(':'))
      field(line.slice(0, line.indexOf(':')), withoutSpace(line.slice(line.indexOf(':') + 1)))
    else field(line, '')
  }
  return { seen, lastEventId }

  function field(name: string, value: string): void {
    switch (name) {
      case 'event':
        typeBuffer = value
        break
      case 'data':
        dataBuffer += `${value}\n`
        break
      case 'id':
        if (value.includes('\0')) break
        idBuffer = value
        blockHasId = true
        break
      case 'retry':
        if (/^[0-9]+$/.test(value)) seen.push({ retry: Math.min(Number.parseInt(value, 10), 2147483647) })
        break
    }
  }

  function dispatch(): void {
    lastEventId = idBuffer
    if (dataBuffer !== '') {
      seen.push({ type: typeBuffer === '' ? 'message' : typeBuffer, data: dataBuffer.slice(0, -1), id: lastEventId })
    } else if (blockHasId) {
      seen.push({ id: lastEventId })
    }
    dataBuffer = ''
    typeBuffer = ''
    blockHasId = false
  }
}

/** What a reader is told, in the order in which it is. */
export type Seen = { type: string; data: string; id: string } | { id: string } | { retry: number } | { comment: string }

function withoutSpace(value: string): string {
  return value.startsWith(' ') ? value.slice(1) : value
}
