import type { Block } from './transport.ts'

/**
 * Reads the text of an event stream, cut anywhere, into blocks, by the WHATWG rules and §6. It is a smaller version of
 * the protocol's parser, because a page pays for each byte, and reading is the smaller part of an event's cost here. A
 * test compares the two.
 *
 * It expects text without the leading BOM, which a decoder has dropped. If this reader dropped a BOM too, it could drop
 * one that is text.
 */
export function createBlockReader(onBlock: (block: Block) => void, onRetry: (ms: number) => void): BlockReader {
  // The last piece ended with a CR, which ended a line. An LF at the start of the next piece belongs to the same line
  // end.
  let afterCr = false
  // The line whose end has not arrived. Engines keep it as a tree of pieces, and copy a long line once, when it is
  // read.
  let held = ''
  let lastId = ''
  // The block whose blank line has not arrived.
  let id: string | undefined
  let type = ''
  let channel: string | undefined
  let content: 'text' | undefined
  let data: string | undefined
  let length = 0

  return (text) => {
    let at = afterCr && text[0] === '\n' ? 1 : 0
    // A decoder returns an empty piece for a part of a character.
    afterCr &&= !text
    let cr = -1
    let lf = -1
    let colon = -1
    for (;;) {
      // Each character is searched for again only behind its last index. Otherwise a stream without it would be
      // searched at every line.
      if (cr < at) cr = find(text, '\r', at)
      if (lf < at) lf = find(text, '\n', at)
      if (colon < at) colon = find(text, ':', at)
      const end = Math.min(cr, lf)
      length += end - at
      if (end === text.length) {
        held += text.slice(at)
        return length <= maxLength
      }
      if (held) {
        const line = held + text.slice(at, end)
        held = ''
        readLine(line, 0, find(line, ':', 0), line.length)
      } else {
        readLine(text, at, Math.min(colon, end), end)
      }
      at = end + 1
      if (end === cr) {
        afterCr = at === text.length
        // A CR and the LF after it are one line end.
        if (text[at] === '\n') at++
      }
    }
  }

  function readLine(text: string, start: number, colon: number, end: number): void {
    if (start === end) {
      endBlock()
      return
    }
    const name = text.slice(start, colon)
    // One space after the colon is not part of the value.
    const value = text.slice(text.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1, end)
    if (name === 'data') data = data === undefined ? value : `${data}\n${value}`
    else if (name === 'id' && !value.includes('\0')) id = value
    else if (name === 'event') type = value
    else if (name === 'channel') channel = value
    else if (name === 'content') content = value as 'text'
    else if (name === 'retry' && /^\d+$/.test(value)) onRetry(Number(value))
    // A comment is no part of an event: a stream of comments alone may go on for ever.
    if (data === undefined) length = 0
  }

  function endBlock(): void {
    // An id is remembered for longer than its event, and in V8 a slice keeps the whole text in memory. A copy costs a
    // tenth of a small event, and less than keeping the rest of a larger one.
    if (id && length > 1000) id = ` ${id}`.slice(1)
    lastId = id ?? lastId
    if (data !== undefined) onBlock({ type: type || 'message', data, id: lastId, channel, content })
    else if (id !== undefined) onBlock({ id })
    id = data = channel = content = undefined
    type = ''
    length = 0
  }
}

/**
 * Reads the next piece.
 *
 * @returns false when the unfinished event or line is longer than 16 Mi characters. Without a limit, a stream that
 * never ends its line would fill the memory.
 */
export type BlockReader = (text: string) => boolean

const maxLength = 16 * 1024 * 1024

function find(text: string, character: string, from: number): number {
  const at = text.indexOf(character, from)
  return at < 0 ? text.length : at
}
