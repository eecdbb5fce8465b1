import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { History } from '../history/history.ts'
import { createReceipts, isProtocol, type Receipts, type RecordedReader } from './receipts.ts'
import { createStrictFrames, type StrictFrame } from './strict-frames.ts'

/**
 * A reader that does what a browser's `EventSource` does and no more: it comes back with the last id of a whole frame. It
 * keeps no list of ids, so that an event which a hub sends twice shows; and it takes no frame but those of §4.3.
 */
export function openStrictReader(options: StrictReaderOptions): RecordedReader {
  const { history, who, url, channels, retryMs, silenceMs, from = null } = options
  const receipts = createReceipts(history, who, channels)
  let cursor = from
  // What a browser waits that was told nothing.
  let asked = 3000
  let stop: (() => void) | undefined
  let timer: NodeJS.Timeout | undefined
  let ended = false
  receipts.start({ once: true, from })
  open()

  function open(): void {
    receipts.connect(cursor)
    stop = readOnce(
      { url, cursor, silenceMs, receipts },
      {
        onFrame(frame) {
          cursor = frame.id ?? cursor
          asked = frame.retryMs ?? asked
        },
        onOver: () => {
          if (!ended) timer = setTimeout(open, retryMs ?? asked)
        },
      },
    )
  }

  return {
    receipts,
    close() {
      ended = true
      clearTimeout(timer)
      stop?.()
      receipts.end()
    },
  }
}

export interface StrictReaderOptions {
  readonly history: History
  readonly who: string
  readonly url: string
  readonly channels: readonly string[]
  /**
   * The wait before it comes back.
   * @defaultValue what the hub asks for
   */
  readonly retryMs?: number
  /** A line that is quiet for so long is dead. More than the hub's heartbeat. */
  readonly silenceMs: number
  readonly from?: string | null
}

interface Visit {
  readonly url: string
  readonly cursor: string | null
  readonly silenceMs: number
  readonly receipts: Receipts
}

interface VisitEvents {
  /** After the frame has been dealt with: in the other order its id would count before its event. */
  onFrame(frame: StrictFrame): void
  onOver(): void
}

/** One connection. Returns what ends it. */
function readOnce({ url, cursor, silenceMs, receipts }: Visit, { onFrame, onOver }: VisitEvents): () => void {
  let frames = 0
  let over = false
  const parser = createStrictFrames({
    onFrame(frame) {
      receipts.frame(frame)
      take(frame)
      onFrame(frame)
    },
    onMalformed: receipts.malformed,
  })
  const headers = { accept: 'text/event-stream', ...(cursor === null ? {} : { 'last-event-id': cursor }) }
  const request = httpRequest(url, { agent: false, headers })
  let silence = setTimeout(() => finish('silence'), silenceMs)

  function take(frame: StrictFrame): void {
    if (frame.type === 'sync-required') receipts.gap(JSON.parse(frame.data))
    else if (frame.type !== undefined && !isProtocol(frame)) {
      frames += 1
      receipts.event(frame.id ?? '', frame.data)
    }
  }

  function read(response: IncomingMessage): void {
    if (response.statusCode !== 200) finish(`status ${response.statusCode}`)
    response.on('data', (bytes: Buffer) => {
      if (over) return
      clearTimeout(silence)
      silence = setTimeout(() => finish('silence'), silenceMs)
      parser.feed(bytes)
    })
    response.on('end', () => finish('end'))
    response.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message))
  }

  function finish(why: string): void {
    if (over) return
    over = true
    clearTimeout(silence)
    request.destroy()
    receipts.close(why, { frames, partial: parser.partial() })
    onOver()
  }

  request.on('response', read)
  request.on('error', (error: NodeJS.ErrnoException) => finish(error.code ?? error.message))
  request.end()
  return () => finish('stopped')
}
