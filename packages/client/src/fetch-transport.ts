import { createParser } from '@rejoin/protocol'
import { withCursor } from './address.ts'
import type { OpenRequest } from './connection.ts'
import { report } from './report.ts'
import { readRetryAfter } from './retry-after.ts'
import type { Block, Sink, Transport } from './transport.ts'

/** Reads a stream through `fetch`, which shows what `EventSource` hides: status, headers, comments. */
export function fetchTransport(address: URL, options: FetchOptions, now: () => number): Transport {
  const { fetch = globalThis.fetch, credentials = 'same-origin' } = options

  return async (request, sink, signal) => {
    const { cursor, cursorIn } = request
    const response = await fetch(cursor !== null && cursorIn === 'query' ? withCursor(address, cursor) : address, {
      headers: await headersFor(request, options.headers),
      cache: 'no-store',
      credentials,
      signal,
    })
    sink.tell({
      type: 'answered',
      status: response.status,
      isEventStream: /^text\/event-stream\s*(;|$)/i.test(response.headers.get('content-type') ?? ''),
      retryAfterMs: readRetryAfter(response.headers.get('retry-after'), now()),
    })
    if (response.body) await readBody(response.body, sink, signal)
  }
}

export interface FetchOptions {
  /**
   * Sent with every request. A function is asked before each attempt and may be async, so that a token is never older
   * than its connection. When it throws or rejects, that is reported and the attempt counts as failed.
   * @defaultValue none. With any, a browser asks a foreign origin for permission first (CORS preflight).
   */
  headers?: RequestHeaders
  /**
   * Whether cookies go along, as for `fetch`.
   * @defaultValue 'same-origin'. A foreign origin gets cookies only with 'include'.
   */
  credentials?: RequestCredentials
  /**
   * Makes the requests, for instance through a proxy or with a log.
   * @defaultValue the global `fetch`, looked up when `connect` is called
   */
  fetch?: typeof globalThis.fetch
}

export type RequestHeaders = HeadersInit | (() => HeadersInit | Promise<HeadersInit>)

async function headersFor({ cursor, cursorIn }: OpenRequest, given?: RequestHeaders): Promise<Headers> {
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
    onRetry: (ms) => sink.tell({ type: 'retry', ms }),
  })

  for (;;) {
    const { done, value } = await reader.read()
    if (done || signal.aborted) return
    sink.tell({ type: 'bytes' })
    try {
      parser.feed(decoder.decode(value, { stream: true }))
    } finally {
      // Also when an event was too large: those before it are whole.
      const complete = blocks
      blocks = []
      for (const block of complete) {
        const wait = sink.receive(block)
        if (wait) await wait
      }
    }
  }
}
