import type { Hello } from '@rejoin/protocol'
import { sendRequest } from '../request.ts'
import { readBody } from './body.ts'
import { createAnswerReader, type Frame } from './poll-answer.ts'
import type { Transport, TransportParts } from './transport.ts'

/**
 * Reads a stream by long polls, for networks where a proxy holds streams back: first asks for everything that is there,
 * then again and again for what is new (§4.14). To the rest of the client, one run of polls is one connection.
 */
export function createTransport(...[address, ...rest]: TransportParts): Transport {
  const [, clock] = rest
  return async (request, sink, signal) => {
    let { cursor } = request
    // Only the first poll asks for fresh credentials or uses renewed ones.
    const later = { ...request, refresh: false, renewed: undefined }
    let lastId = ''
    // The first poll does not wait. While a hub waits for news, the client would not know whether the hub can be
    // reached.
    let waitMs = 0
    let isFirst = true
    for (;;) {
      const url = new URL(address)
      // At the address of the stream, a hub takes this parameter for a poll.
      url.searchParams.set('waitMs', String(waitMs))
      const askedAt = clock.now()
      // In the query: a proxy cannot take the cursor away there, and a browser needs no permission to send it.
      const asked = { ...(isFirst ? request : later), cursor, inQuery: true }
      const { answer: head, body } = await sendRequest([url, ...rest], asked, sink, signal, 'application/json')
      if (!head) return
      if (isFirst || !head.isStream) sink.tell({ type: 'answered', ...head, isElsewhere: true })
      const reader = createAnswerReader()
      let isOver = false
      const takeText = async (text: string) => {
        sink.tell({ type: 'bytes' })
        isOver = await take(reader.read(text))
        return isOver
      }
      if (body) await readBody(body, signal, takeText)
      if (isOver || signal.aborted) return
      const answer = reader.finish()
      if (answer.retryMs > 0) sink.tell({ type: 'retry', ms: answer.retryMs })
      if (await take(answer.events)) return
      // Nothing new, and too soon for a hub: something in between has answered, or the server is no hub. Polling again
      // at once would never end.
      const { cursor: reached = null } = answer
      if (reached === cursor && clock.now() - askedAt < waitMs / 2 && !isFirst) return
      cursor = reached
      // For a server that sends no `hello`: without a wait it would be polled without a pause.
      waitMs ||= longestWaitMs
      isFirst = false
    }

    /** @returns whether this run of polls is over */
    async function take(frames: readonly Frame[]): Promise<boolean> {
      for (const { id, type, data, channel, content } of frames) {
        // The server is no hub, and would send the same again.
        if (typeof type !== 'string' || typeof data !== 'string') return true
        lastId = id ?? lastId
        if (type === 'hello') {
          const { requested, heartbeatMs = 0 } = JSON.parse(data) as Partial<Hello>
          if (heartbeatMs > 0) waitMs = Math.min(heartbeatMs, longestWaitMs)
          // The answer to another question, perhaps from a cache. Only a new connection can deal with that.
          if (!isFirst && requested !== cursor) return true
          if (!isFirst) continue
        }
        const wait = sink.receive({ id: lastId, type, data, channel, content })
        if (wait) await wait
        if (signal.aborted || type === 'close') return true
      }
      return false
    }
  }
}

/**
 * Shorter than the 30 s of common idle timeouts, and than the silence after which the machine takes a connection for
 * dead.
 */
const longestWaitMs = 25_000
