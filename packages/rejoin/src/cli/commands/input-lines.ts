import { RejoinError } from '@rejoin/protocol'

export interface InputLine {
  /** The number of the line, from 1. */
  readonly number: number
  readonly text: string
}

/** The lines of an input. Lines that arrive together come in one array, so a slow pipe is passed on at its own pace. */
export async function* inputLines(input: AsyncIterable<string | Uint8Array>): AsyncGenerator<InputLine[]> {
  let number = 0
  let rest = ''
  for await (const text of inputText(input)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    // A hub would not take such a line, and a file that is no text may have no line break at all.
    if (rest.length > maxLineLength) throw notText(`Line ${number + lines.length + 1} is over 1 MiB.`)
    yield lines.map(numbered)
  }
  if (rest !== '') yield [numbered(rest)]

  function numbered(line: string): InputLine {
    number += 1
    return { number, text: line.endsWith('\r') ? line.slice(0, -1) : line }
  }
}

const maxLineLength = 1024 * 1024

/** The whole input as one text. */
export async function wholeInput(input: AsyncIterable<string | Uint8Array>): Promise<string> {
  let whole = ''
  for await (const text of inputText(input)) {
    whole += text
    if (whole.length > maxLineLength) throw notText('The input is over 1 MiB, and one event holds 256 KiB.')
  }
  return whole
}

async function* inputText(input: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
  try {
    for await (const part of input) yield typeof part === 'string' ? part : decoder.decode(part, { stream: true })
    yield decoder.decode()
  } catch (cause) {
    if (cause instanceof RejoinError || (cause as { code?: unknown }).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw cause
    throw notText('The input is not UTF-8.')
  }
}

function notText(problem: string): RejoinError {
  return new RejoinError(`${problem} Encode it as UTF-8, or binary data as base64.`, { code: 'invalid-data' })
}
