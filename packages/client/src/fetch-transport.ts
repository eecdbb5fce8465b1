import { createParser } from '@rejoin/protocol'
import { withCursor } from './address.ts'
import type { OpenRequest } from './connection.ts'
import { report } from './report.ts'
import { readRetryAfter } from './retry-after.ts'
import type { Block, Sink, Transport } from './transport.ts'

/** Reads a stream through `fetch`, which shows what `EventSource` hides: status, headers, comments. */
export function fetchTransport(options: FetchTransportOptions): Transport {
  const { address, fetch, credentials, now } = options

  return async (request, sink, signal) => {
    const { cursor, cursorIn } = request
    const response = await fetch(cursor !== null && cursorIn === 'query' ? withCursor(address, cursor) : address, {
      headers: await headersFor(request, options.headers),
      cache: 'no-store',
      credentials,
      signal,
    })
    sink.answered({
      status: response.status,
      isEventStream: /^text\/event-stream\s*(;|$)/i.test(response.headers.get('content-type') ?? ''),
      retryAfterMs: readRetryAfter(response.headers.get('retry-after'), now()),
    })
    if (!signal.aborted && response.body) await readBody(response.body, sink, signal)
  }
}

export interface FetchTransportOptions {
  address: URL
  fetch: typeof globalThis.fetch
  headers: RequestHeaders
  credentials: RequestCredentials
  now(): number
}

export type RequestHeaders = HeadersInit | (() => HeadersInit | Promise<HeadersInit>)

async function headersFor({ cursor, cursorIn }: OpenRequest, given: RequestHeaders): Promise<Headers> {
  let headers: Headers
  try {
    headers = new Headers(typeof given === 'function' ? await given() : given)
  } catch (error) {
    // Retried like a network failure, as a token may have been out of reach; but it may also be a mistake in the user's
    // code, which would otherwise look like a server that never answers.
    report(error)
    throw error
  }
  headers.set('Accept', 'text/event-stream')
  headers.delete('Last-Event-ID')
  if (cursor !== null && cursorIn === 'header') headers.set('Last-Event-ID', cursor)
  return headers
}

async function readBody(body: ReadableStream<Uint8Array>, sink: Sink, signal: AbortSignal): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let blocks: Block[] = []
  // Not seeded with our cursor: a block whose id repeats the last one would look like one that names none, and the
  // first event after a reconnect is where a repetition is likeliest.
  const parser = createParser({
    onEvent: (event) => blocks.push(event),
    onId: (id) => blocks.push({ id }),
    onRetry: sink.retry,
  })

  for (;;) {
    const { done, value } = await reader.read()
    if (done || signal.aborted) return
    sink.bytes()
    try {
      parser.feed(decoder.decode(value, { stream: true }))
    } finally {
      // Also when an event was too large: those before it are whole.
      const complete = blocks
      blocks = []
      await pass(complete, sink, signal)
    }
  }
}

async function pass(blocks: Block[], sink: Sink, signal: AbortSignal): Promise<void> {
  for (const block of blocks) {
    // A handler has closed the stream, which silences the rest of the chunk.
    if (signal.aborted) return
    const wait = sink.block(block)
    if (wait) await wait
  }
}
