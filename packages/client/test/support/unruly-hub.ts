import { hello, message } from './scripted-server.ts'

/**
 * A hub in memory, reached by its `fetch`, that does whatever a network and a server may do to a stream: reject, hang, strip
 * the cursor, cut bytes anywhere, send an event twice. What it numbers and holds is right at any time, so that a reader can
 * be judged by it.
 */
export function unrulyHub(random: () => number) {
  const log: string[] = []
  const lines = new Set<Line>()
  let firstHeld = 0
  let isUnruly = true
  let mostLines = 0

  return {
    log,
    fetch: serve as typeof fetch,
    /** Connections that are open now, and the most that were at any time. */
    lines: () => ({ now: lines.size, most: mostLines }),
    publish() {
      log.push(`${log.length}`)
      for (const line of lines) line.deliver()
    },
    beat() {
      for (const line of lines) line.send(': hb')
    },
    cut(how: 'end' | 'reset') {
      for (const line of lines) line.close(how)
    },
    /** From now on, nothing arrives any more on what is open. */
    hang() {
      for (const line of lines) line.isMute = true
    },
    trim() {
      firstHeld = Math.max(firstHeld, log.length - 3)
    },
    /** From now on it behaves. What hangs is found out by whoever waits for it. */
    calm() {
      isUnruly = false
    },
  }

  async function serve(input: URL, { headers, signal }: { headers: Headers; signal: AbortSignal }): Promise<Response> {
    signal.throwIfAborted()
    const luck = isUnruly ? random() : 1
    if (luck < 0.08) throw new TypeError('no network')
    if (luck < 0.12) {
      const retryAfter = pick(random, ['0', '1', 'soon', '99999'])
      return new Response('', { status: pick(random, [408, 429, 500, 503]), headers: { 'Retry-After': retryAfter } })
    }
    if (luck < 0.14) return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    const isStripped = isUnruly && random() < 0.1
    const cursor = (isStripped ? null : headers.get('Last-Event-ID')) ?? input.searchParams.get('lastEventId')
    return input.searchParams.has('waitMs') ? poll(cursor) : stream(cursor, signal)
  }

  function stream(cursor: string | null, signal: AbortSignal): Response {
    const { at, frames } = opening(cursor)
    const lineEnd = pick(random, ['\n', '\r\n', '\r'])
    let next = at
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        const line: Line = {
          isMute: false,
          send(...fields) {
            let bytes = new TextEncoder().encode(`${fields.join(lineEnd)}${lineEnd}${lineEnd}`)
            while (bytes.length > 0 && !line.isMute) {
              const length = isUnruly ? 1 + Math.floor(random() * bytes.length) : bytes.length
              controller.enqueue(bytes.slice(0, length))
              bytes = bytes.slice(length)
            }
          },
          deliver() {
            for (; next < log.length; next++) {
              const times = isUnruly && random() < 0.05 ? 2 : 1
              for (let time = 0; time < times; time++) line.send(...message(idOf(next), next))
            }
          },
          close(how) {
            if (!lines.delete(line)) return
            if (how === 'end') controller.close()
            else controller.error(new TypeError(how))
          },
        }
        signal.addEventListener('abort', () => line.close('aborted'))
        lines.add(line)
        mostLines = Math.max(mostLines, lines.size)
        for (const { id, type, data } of frames) {
          line.send(...(id === null ? [] : [`id: ${id}`]), `event: ${type}`, `data: ${data}`)
        }
        line.deliver()
      },
    })
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } })
  }

  function poll(cursor: string | null): Response {
    const { at, frames } = opening(cursor)
    const events = log.slice(at).map((data, index) => ({ id: idOf(at + index), type: 'message', data }))
    return Response.json({ events: [...frames, ...events], cursor: idOf(log.length - 1), retryMs: 100 })
  }

  /** Where a stream starts, and what it says first (§4.4, §4.6). */
  function opening(cursor: string | null): { at: number; frames: Frame[] } {
    const after = cursor === null ? log.length : indexOf(cursor) + 1
    const isGap = after < firstHeld
    const at = isGap ? log.length : after
    const latest = idOf(at - 1)
    const [greeting] = hello({ resumed: !isGap && cursor !== null, requested: cursor }).slice(-1)
    const frames = [{ id: isGap ? null : latest, type: 'hello', data: greeting?.slice('data: '.length) ?? '' }]
    const gap = { reason: 'expired', channels: [], requested: cursor, oldest: null, latest }
    return {
      at,
      frames: isGap ? [...frames, { id: latest, type: 'sync-required', data: JSON.stringify(gap) }] : frames,
    }
  }
}

export function idOf(index: number): string {
  return `e${index}`
}

export function indexOf(id: string): number {
  return Number(id.slice(1))
}

export function pick<Value>(random: () => number, values: readonly Value[]): Value {
  return values[Math.floor(random() * values.length)] as Value
}

interface Line {
  isMute: boolean
  send(...fields: string[]): void
  /** Sends what this line has not had yet. */
  deliver(): void
  close(how: 'end' | 'reset' | 'aborted'): void
}

interface Frame {
  readonly id: string | null
  readonly type: string
  readonly data: string
}
