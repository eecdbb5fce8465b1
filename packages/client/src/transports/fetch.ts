import { readRejection, readRetryAfter, sendRequest } from '../request.ts'
import { createBlockReader } from './block-reader.ts'
import { readBody } from './body.ts'
import type { Block, Transport, TransportParts } from './transport.ts'

/** Reads a stream through `fetch`, which shows what `EventSource` hides: status, headers and comments. */
export function createTransport(...[address, options, clock]: TransportParts): Transport {
  return async (request, sink, signal) => {
    const { status, headers, body } = await sendRequest(address, request, options, sink, signal)
    const type = headers.get('content-type') ?? ''
    // When a connection is cut within the head, Chromium takes the part that arrived for the whole: a status of `200`
    // or its first digits, and the beginning of the type.
    if (status < 201 && 'text/event-strea'.startsWith(type)) return
    sink.tell({
      type: 'answered',
      status,
      isStream: /^text\/event-stream\s*(;|$)/i.test(type),
      retryAfterMs: readRetryAfter(headers.get('retry-after'), clock.now()),
      ...(status > 399 && (await readRejection(body, type, clock))),
    })
    if (!body) return
    let blocks: Block[] = []
    // The reader does not know the client's cursor. Otherwise a first block that repeats this id would look like a
    // block without an id, and a repetition is likeliest right after a reconnect.
    const read = createBlockReader(
      (block) => blocks.push(block),
      (ms) => sink.tell({ type: 'retry', ms }),
    )
    await readBody(body, signal, async (text) => {
      sink.tell({ type: 'bytes' })
      const isBounded = read(text)
      for (const block of blocks) {
        const wait = sink.receive(block)
        if (wait) await wait
      }
      blocks = []
      if (!isBounded) sink.tell({ type: 'ended', reason: 'too-large' })
    })
  }
}
