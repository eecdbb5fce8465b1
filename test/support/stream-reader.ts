import { once } from 'node:events'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { createParser } from '@rejoin/protocol'
import { onTestFinished } from 'vitest'

export interface Frame {
  readonly id: string
  readonly type: string
  // biome-ignore lint/suspicious/noExplicitAny: what stands there is what the test is about.
  readonly data: any
  /** When it has come, on the clock of `performance`. */
  readonly at: number
}

export interface StreamReader {
  readonly frames: readonly Frame[]
  /** All that has come. */
  readonly text: string
  /**
   * Waits until it is so. Rejects when the stream is over before, because nothing more comes then, and after `limitMs`. The error
   * has the line that waits and all that has come.
   */
  until(isSo: (reader: StreamReader) => boolean): Promise<void>
  /** Resolves when the stream is over, whoever ended it. */
  readonly ended: Promise<void>
  /** Goes away without a word. */
  cut(): void
}

// Well below the time of a test, so that the wait that does not end is named, and not the test alone.
const limitMs = 45_000

/** Reads a stream of JSON events from a connection of its own, until the test is over. */
export async function openReader(target: RequestOptions): Promise<StreamReader> {
  const outgoing = request({ agent: false, ...target })
  onTestFinished(() => void outgoing.destroy())
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  // A reset in mid-stream is told to the request too; `ended` tells it here.
  outgoing.on('error', () => undefined)
  const frames: Frame[] = []
  const waiting = new Set<() => void>()
  let text = ''
  const parser = createParser({
    onEvent: ({ id, type, data }) =>
      void frames.push({ id, type, data: data === '' ? null : JSON.parse(data), at: performance.now() }),
  })
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part
    parser.feed(part)
    for (const look of waiting) look()
  })
  response.on('error', () => undefined)
  const ended = new Promise<void>((resolve) => response.once('close', resolve))
  void ended.then(() => {
    for (const look of waiting) look()
  })
  const reader: StreamReader = {
    frames,
    get text() {
      return text
    },
    until(isSo) {
      // A timer does not know who waits, so the stack is taken here.
      const failure = new Error()
      Error.captureStackTrace(failure, reader.until)
      return new Promise((resolve, reject) => {
        const look = () => {
          if (isSo(reader)) end(resolve)
          else if (response.closed) fail('The stream is over')
        }
        const limit = setTimeout(() => fail(`${limitMs} ms are over`), limitMs)
        waiting.add(look)
        look()

        function fail(why: string): void {
          failure.message = `${why}, and what the test waits for has not come: ${isSo}. The stream brought: ${text}`
          end(() => reject(failure))
        }

        function end(settle: () => void): void {
          clearTimeout(limit)
          waiting.delete(look)
          settle()
        }
      })
    },
    ended,
    cut: () => void response.destroy(),
  }
  return reader
}
