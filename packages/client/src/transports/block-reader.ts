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
    const rest = afterCr && text[0] === '\n' ? text.slice(1) : text
    // A decoder returns an empty piece for a part of a character.
    if (text) afterCr = text.endsWith('\r')
    // Hubs end their lines with LF alone, and the search for a CR costs little.
    const lines = (rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest).split('\n')
    lines[0] = held + lines[0]
    held = lines.pop()!
    for (const line of lines) readLine(line)
    return length + held.length <= maxLength
  }

  function readLine(line: string): void {
    if (!line) {
      endBlock()
      return
    }
    length += line.length
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    // One space after the colon is not part of the value.
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
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
