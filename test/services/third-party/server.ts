import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Answers one request after the other as the script says, the last answer for all that follow, and notes who asked. */
export async function openScriptedServer(script: readonly ScriptedAnswer[]): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = []
  let cutOff: (() => void) | undefined
  const server = createServer(({ url, headers }, response) => {
    // A browser asks for more than it is told to, such as an icon.
    if (url !== '/events') {
      response.end()
      return
    }
    const { status = 200, text = '', after = 'stay' } = script[Math.min(requests.length, script.length - 1)] ?? {}
    const request: ScriptedRequest = { at: performance.now(), cursor: headers['last-event-id'] ?? null }
    requests.push(request)
    response.writeHead(status, status === 200 ? { 'Content-Type': 'text/event-stream' } : {})
    response.flushHeaders()
    // The time is taken first: nobody starts to wait before the end is sent, and on a busy machine it is noticed late.
    cutOff = () => {
      request.leftAt = performance.now()
      // Without the last chunk: whoever reads sees that the answer is not whole.
      response.socket?.end()
    }
    if (after === 'end') {
      request.leftAt = performance.now()
      response.end(text)
    } else if (after === 'cut') cutOff()
    else response.write(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    requests,
    cut: () => cutOff?.(),
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => void server.close(() => resolve()))
    },
  }
}

export interface ScriptedAnswer {
  /** @defaultValue 200 */
  readonly status?: number
  readonly text?: string
  /**
   * What follows the text: nothing more on a line that stays, or an end in order. With `cut` there is no text either.
   * @defaultValue 'stay'
   */
  readonly after?: 'stay' | 'end' | 'cut'
}

export interface ScriptedRequest {
  /** In the time of `performance.now()`. */
  readonly at: number
  readonly cursor: string | string[] | null
  /** When its end was sent, if it was. */
  leftAt?: number
}

export interface ScriptedServer {
  readonly url: string
  readonly requests: readonly ScriptedRequest[]
  /** Ends the newest answer before it is whole. For when the client has shown what it got: an error may overtake that. */
  cut(): void
  close(): Promise<void>
}
