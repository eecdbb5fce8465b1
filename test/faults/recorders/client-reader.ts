import { type ConnectOptions, connect } from '@rejoin/client'
import type { History } from '../history/history.ts'
import { createReceipts, isProtocol, type Receipts, type RecordedReader } from './receipts.ts'
import { createStrictFrames } from './strict-frames.ts'

/**
 * Our client, watched from both sides: what its handlers get is what the user would have got, and what passes through its
 * `fetch` is what was on the wire.
 */
export function openClientReader({ history, who, url, channels, options = {} }: ClientReaderOptions): RecordedReader {
  const receipts = createReceipts(history, who, channels)
  receipts.start({ once: true, from: options.from ?? null })
  const stream = connect(url, { ...options, parse: 'text', fetch: watchedFetch(receipts) })
  stream.on('*', ({ id, data }) => receipts.event(id, data as string))
  stream.onSync((gap) => receipts.gap(gap))
  return {
    receipts,
    close() {
      stream.close()
      receipts.end()
    },
  }
}

export interface ClientReaderOptions {
  readonly history: History
  readonly who: string
  readonly url: string
  readonly channels: readonly string[]
  readonly options?: Omit<ConnectOptions, 'fetch' | 'parse'>
}

function watchedFetch(receipts: Receipts): typeof globalThis.fetch {
  return async (input, init) => {
    const cursor = new Headers(init?.headers).get('last-event-id')
    receipts.connect(cursor ?? new URL(String(input)).searchParams.get('lastEventId'))
    let frames = 0
    const parser = createStrictFrames({
      onFrame(frame) {
        if (frame.type !== undefined && !isProtocol(frame)) frames += 1
        receipts.frame(frame)
      },
      onMalformed: receipts.malformed,
    })
    const finish = (why: string) => receipts.close(why, { frames, partial: parser.partial() })
    try {
      const response = await fetch(input, init)
      if (isPoll(input)) {
        frames += watchPoll(await response.clone().text(), receipts)
        finish('answered')
        return response
      }
      const body = response.body && watchedBody(response.body, parser.feed, finish)
      return new Response(body, { status: response.status, headers: response.headers })
    } catch (error) {
      finish(causeOf(error))
      throw error
    }
  }
}

/** Where streams do not last, the client asks for one answer after the other (§4.14). */
function isPoll(input: RequestInfo | URL): boolean {
  return new URL(String(input)).searchParams.has('waitMs')
}

/** Each answer counts as a connection. Gives the number of its events. */
function watchPoll(text: string, receipts: Receipts): number {
  const { events = [], cursor = null, retryMs } = JSON.parse(text) as PollAnswer
  for (const { type, id, data } of events) receipts.frame({ type, id: id ?? undefined, data, retryMs })
  if (cursor !== null) receipts.frame({ type: 'checkpoint', id: cursor, data: '{}', retryMs })
  return events.filter((frame) => !isProtocol(frame)).length
}

interface PollAnswer {
  readonly events?: readonly { readonly id: string | null; readonly type: string; readonly data: string }[]
  readonly cursor?: string | null
  readonly retryMs?: number
}

/** The same bytes at the same pace: nothing is read before it is asked for. */
function watchedBody(
  body: ReadableStream<Uint8Array>,
  onBytes: (bytes: Uint8Array) => void,
  onOver: (why: string) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) {
            onOver('end')
            controller.close()
          } else {
            onBytes(value)
            controller.enqueue(value)
          }
        } catch (error) {
          onOver(causeOf(error))
          throw error
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

function causeOf(error: unknown): string {
  const { name, cause } = error as Error
  return (cause as NodeJS.ErrnoException | undefined)?.code ?? name
}
