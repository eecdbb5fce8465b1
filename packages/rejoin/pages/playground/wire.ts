import { createStore, type Store } from '../shared/store.ts'

/** A `fetch` that writes down its requests and the bytes of their answers, to show what really went over the wire. */
export interface Wire extends Store<readonly WireLine[]> {
  readonly fetch: typeof fetch
  /** The last cursor that a request has sent, if one has. */
  readonly cursor: string | null
}

export interface WireLine {
  readonly key: number
  /** `sent`: a line of a request. `cursor`: the line of a request with its cursor. `note`: what happened to the connection. */
  readonly kind: 'sent' | 'cursor' | 'note' | 'field' | 'data' | 'comment' | 'control'
  readonly text: string
}

export function createWire(): Wire {
  const store = createStore<readonly WireLine[]>([])
  let last = 0
  let cursor: string | null = null

  function write(lines: readonly Omit<WireLine, 'key'>[]): void {
    const numbered = lines.map((line) => ({ ...line, key: ++last }))
    store.set([...store.getSnapshot(), ...numbered].slice(-maxLines))
  }

  async function send(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    const request = new Request(input, init)
    cursor = request.headers.get('last-event-id') ?? cursor
    write(requestLines(request))
    try {
      const response = await fetch(request)
      write([{ kind: 'note', text: `HTTP ${response.status} ${response.headers.get('content-type') ?? ''}` }])
      return response.body ? withBody(response, tapped(response.body)) : response
    } catch (error) {
      write([{ kind: 'note', text: 'no answer' }])
      throw error
    }
  }

  /** The same body, read at the pace of its reader. Writes down its lines, and how the connection ends. */
  function tapped(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    const decoder = new TextDecoder()
    let rest = ''
    return new ReadableStream(
      {
        async pull(controller) {
          try {
            const { done, value } = await reader.read()
            if (done) {
              write([{ kind: 'note', text: 'the server has ended the stream' }])
              controller.close()
              return
            }
            const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
            rest = lines.pop() ?? ''
            write(lines.map((text) => ({ kind: kindOf(text), text: shortened(text) })))
            controller.enqueue(value)
          } catch (error) {
            write([{ kind: 'note', text: 'the connection is lost' }])
            controller.error(error)
          }
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    )
  }

  return {
    fetch: send,
    subscribe: store.subscribe,
    getSnapshot: store.getSnapshot,
    get cursor() {
      return cursor
    },
  }
}

// Enough for a cut of half a minute, and some more.
const maxLines = 400
const longestLine = 400

function requestLines(request: Request): Omit<WireLine, 'key'>[] {
  const { pathname, searchParams } = new URL(request.url)
  const headers = [...request.headers].filter(([name]) => name !== 'authorization')
  return [
    { kind: 'sent', text: `GET ${pathname}${searchParams.size > 0 ? `?${searchParams}` : ''}` },
    ...headers.map(([name, value]) => ({
      kind: name === 'last-event-id' ? ('cursor' as const) : ('sent' as const),
      text: `${name === 'last-event-id' ? 'Last-Event-ID' : name}: ${value}`,
    })),
  ]
}

function kindOf(line: string): WireLine['kind'] {
  if (line.startsWith(':')) return 'comment'
  if (/^event: ?(?:hello|sync-required|close|checkpoint)\b/.test(line)) return 'control'
  return line.startsWith('data:') ? 'data' : 'field'
}

/** Replaces the body of a response. A new `Response` would have no `url`. */
function withBody(response: Response, body: ReadableStream): Response {
  return Object.defineProperty(response, 'body', { value: body })
}

function shortened(text: string): string {
  return text.length > longestLine ? `${text.slice(0, longestLine)}…` : text
}
