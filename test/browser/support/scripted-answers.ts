import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Answers requests by a script, for what a hub never says: each path has its answers, one after the other, the last one
 * for all that follow.
 */
export function scriptedAnswers(scripts: Scripts): Scripted {
  const counts = new Map<string, number>()
  const ends: number[] = []
  return {
    ends,
    intercept(request, response) {
      const path = request.url ?? ''
      const script = scripts[path]
      if (!script) return false
      const count = counts.get(path) ?? 0
      counts.set(path, count + 1)
      const { status = 200, headers, text = '', stays = false } = script[Math.min(count, script.length - 1)] as Answer
      response.writeHead(status, {
        'Content-Type': 'text/event-stream',
        'Access-Control-Allow-Origin': '*',
        ...headers,
      })
      response.flushHeaders()
      if (stays) response.write(text)
      else {
        // Before it is sent: nobody starts to wait sooner, and a busy machine notices late that it has gone.
        ends.push(performance.now())
        response.end(text)
      }
      return true
    },
  }
}

export type Scripts = Readonly<Record<string, readonly Answer[]>>

export interface Answer {
  /** @defaultValue 200 */
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly text?: string | Uint8Array
  /**
   * Whether the stream goes on after the text, without another word.
   * @defaultValue false: it ends
   */
  readonly stays?: boolean
}

export interface Scripted {
  /** When the ends of answers were sent, in the time of `performance.now()`. */
  readonly ends: readonly number[]
  intercept(request: IncomingMessage, response: ServerResponse): boolean
}
