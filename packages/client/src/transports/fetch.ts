import { readMessage, readRetryAfter, sendRequest } from '../request.ts'
import { createBlockReader } from './block-reader.ts'
import { readBody } from './body.ts'
import type { Block, Transport, TransportParts } from './transport.ts'

/** Reads a stream through `fetch`, which shows what `EventSource` hides: status, headers, comments. */
export function createTransport(...[address, options, clock]: TransportParts): Transport {
  return async (request, sink, signal) => {
    const { status, headers, body } = await sendRequest(address, request, options, sink, signal)
    const type = headers.get('content-type') ?? ''
    // Chromium takes what it has of a head for the whole when the line is cut: `200` or less of it, and less of the type.
    if (status < 201 && 'text/event-strea'.startsWith(type)) return
    sink.tell({
      type: 'answered',
      status,
      isStream: /^text\/event-stream\s*(;|$)/i.test(type),
      retryAfterMs: readRetryAfter(headers.get('retry-after'), clock.now()),
      closeMessage: status > 399 && body && (await readMessage(body, type, clock)),
    })
    if (!body) return
    let blocks: Block[] = []
    // Not told of our cursor: a block whose id repeats it would look like one that names none, and the first event after a
    // reconnect is where a repetition is likeliest.
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
