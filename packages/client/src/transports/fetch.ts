import { sendRequest } from '../request.ts'
import { createBlockReader } from './block-reader.ts'
import { readBody } from './body.ts'
import type { Block, Transport, TransportParts } from './transport.ts'

/** Reads a stream through `fetch`, which shows what `EventSource` hides: status, headers and comments. */
export function createTransport(...parts: TransportParts): Transport {
  return async (request, sink, signal) => {
    const { answer, body } = await sendRequest(parts, request, sink, signal, 'text/event-stream')
    if (!answer) return
    sink.tell({ type: 'answered', ...answer })
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
