import type { Block } from './transport.ts'

/**
 * Reads the JSON of a poll's answer (§4.14) as it arrives, and returns each frame as soon as it is complete. On a slow
 * connection an answer takes longer than each of its frames, and an answer that is cut would otherwise bring nothing.
 */
export function createAnswerReader(): AnswerReader {
  let text = ''
  let at = 0
  let depth = 0
  let isString = false
  // Whether the array that was opened last holds the frames, and where the current frame in it begins.
  let isFrames = false
  let start = 0
  let given = 0

  return {
    read(piece) {
      text += piece
      const frames: Frame[] = []
      for (; at < text.length; at++) {
        const character = text[at]
        // May move past the end of the piece: the escaped character is then the first of the next piece.
        if (isString && character === '\\') at++
        else if (character === '"') isString = !isString
        else if (isString) continue
        else if (character === '{' || character === '[') {
          depth++
          if (depth === 2) isFrames = /^\s*{\s*"events"\s*:\s*$/.test(text.slice(0, at))
          if (depth === 3) start = at
        } else if (character === '}' || character === ']') {
          if (depth === 3 && isFrames) {
            given++
            frames.push(JSON.parse(text.slice(start, at + 1)))
          }
          depth--
        }
      }
      return frames
    },

    finish() {
      const answer: PollAnswer = JSON.parse(text)
      return { ...answer, events: answer.events.slice(given) }
    },
  }
}

export interface AnswerReader {
  /** Takes the next piece of the text, and returns the frames that it completes. */
  read(piece: string): Frame[]
  /**
   * The answer, with the frames that `read` has not returned: with all of them, when `events` is not the first field.
   *
   * @throws SyntaxError when the text was cut, or is not JSON
   */
  finish(): PollAnswer
}

export type Frame = Omit<Block, 'id'> & { readonly id: string | null }

export interface PollAnswer {
  readonly events: readonly Frame[]
  readonly cursor: string | null
  readonly retryMs: number
}
