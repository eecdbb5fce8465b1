import type { Hello } from '@rejoin/protocol'
import { readMessage, readRetryAfter, sendRequest } from '../request.ts'
import { readBody } from './body.ts'
import { createAnswerReader, type Frame } from './poll-answer.ts'
import type { Transport, TransportParts } from './transport.ts'

/**
 * Reads a stream in answers, for where a proxy holds streams back: asks what there is, then again and again what is new
 * (§4.14). One run of polls is one connection to everybody else.
 */
export function createTransport(...[address, options, clock]: TransportParts): Transport {
  return async (request, sink, signal) => {
    let { cursor } = request
    // What was renewed is asked for once, not with every poll.
    const later = { ...request, refresh: false, renewed: undefined }
    let lastId = ''
    // At first not at all: while the hub waits for news, nobody here would know whether it can be reached.
    let waitMs = 0
    let isFirst = true
    for (;;) {
      const url = pollAddress(address)
      url.searchParams.set('waitMs', String(waitMs))
      const askedAt = clock.now()
      // In the query, so that neither a proxy takes the cursor away nor a browser asks for permission to send it.
      const asked = { ...(isFirst ? request : later), cursor, inQuery: true }
      const { status, headers, body } = await sendRequest(url, asked, options, sink, signal, 'application/json')
      const type = headers.get('content-type') ?? ''
      // A head that was cut off, as in the transport of streams.
      if (status < 201 && 'application/jso'.startsWith(type)) return
      const isAnswer = /^application\/json\s*(;|$)/i.test(type)
      if (isFirst || status !== 200 || !isAnswer) {
        const retryAfterMs = readRetryAfter(headers.get('retry-after'), clock.now())
        const closeMessage = status > 399 ? await readMessage(body, type, clock) : undefined
        sink.tell({ type: 'answered', status, isStream: isAnswer, retryAfterMs, isElsewhere: true, closeMessage })
      }
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
      // Something on the way answers in the hub's place, or the hub is not ours: to ask at once would be to ask for ever.
      const { cursor: reached = null } = answer
      if (reached === cursor && clock.now() - askedAt < waitMs / 2 && !isFirst) return
      cursor = reached
      // For one that does not greet, and would otherwise be asked again and again without a wait.
      waitMs ||= longestWaitMs
      isFirst = false
    }

    /** @returns whether this run of polls is over */
    async function take(frames: readonly Frame[]): Promise<boolean> {
      for (const { id, type, data, channel, content } of frames) {
        // Of something that is no hub, of which the same is to be expected.
        if (typeof type !== 'string' || typeof data !== 'string') return true
        lastId = id ?? lastId
        if (type === 'hello') {
          const { requested, heartbeatMs = 0 } = JSON.parse(data) as Partial<Hello>
          if (heartbeatMs > 0) waitMs = Math.min(heartbeatMs, longestWaitMs)
          // An answer to another question, from a cache perhaps. What can be done about it is for a new connection.
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

/** Where the stream of an address is polled: beside `/events`, which may have a prefix of the application before it. */
export function pollAddress(address: URL): URL {
  const url = new URL(address)
  url.pathname = url.pathname.replace(/\/(events|stream)(?=\/|$)/, '/poll')
  return url
}

/** Under the 30 s of common idle timeouts, and under the silence that the machine takes for a dead connection. */
const longestWaitMs = 25_000
