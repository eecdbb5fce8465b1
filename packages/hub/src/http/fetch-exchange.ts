import type { Hub } from '../hub/hub.ts'
import { createPullSink } from '../hub/pull-sink.ts'
import type { Session } from '../hub/session.ts'
import { type Answer, refusal, tooLarge } from './answer.ts'
import { defaultBudgetBytes } from './options.ts'
import type { Plan } from './route.ts'

/** Carries out what was planned for a request, as a response of the fetch standard. Never rejects. */
export type FetchExchange = (plan: Plan | Promise<Plan>, request: Request) => Promise<Response>

/** For every adapter whose framework or platform answers a `Request` with a `Response`. */
export function createFetchExchange(hub: Hub, options: { sinkBudgetBytes?: number }): FetchExchange {
  const budgetBytes = options.sinkBudgetBytes ?? defaultBudgetBytes

  return async (planned, request) => {
    const plan = await planned
    if (plan.kind === 'stream') return new Response(bodyOf(plan, request.signal), { headers: plan.headers })
    if (plan.kind === 'answer') return responseOf(plan.answer)
    if (plan.kind === 'poll') return responseOf(await plan.answer(request.signal))
    return responseOf(await receive(plan, request))
  }

  /**
   * The stream's own queue stays empty: what waits, waits in the sink, where it is counted, and is handed out when the
   * platform asks for more, which it does when the connection has taken what it got.
   */
  function bodyOf({ subscribe }: Plan & { kind: 'stream' }, signal: AbortSignal): ReadableStream<Uint8Array> {
    let session: Session | undefined
    let body: ReadableStreamDefaultController<Uint8Array>
    let asked = false
    let cancelled = false
    const sink = createPullSink<Uint8Array>({
      budgetBytes,
      itemsOf: ({ plain }) => [plain],
      onDrain: () => session?.drained(),
      // At once, because nobody may be asking any more; the platform then cuts the connection.
      onDestroy: (error) => body.error(error),
    })
    const taker = {
      take(bytes: Uint8Array) {
        asked = false
        body.enqueue(bytes)
      },
      end() {
        signal.removeEventListener('abort', leave)
        if (!cancelled) body.close()
      },
      fail: (error: unknown) => body.error(error),
    }

    function leave(): void {
      signal.removeEventListener('abort', leave)
      session?.disconnected()
      sink.stop()
    }

    return new ReadableStream<Uint8Array>(
      {
        start(controller) {
          body = controller
          // Whoever left while their rights were looked up would be a session that nobody ever ends.
          if (signal.aborted) return sink.end()
          // Some platforms tell of a reader that has gone by the one, some by the other.
          signal.addEventListener('abort', leave)
          session = hub.subscribe(subscribe, sink)
        },
        pull() {
          if (asked) return
          asked = true
          sink.ask(taker)
        },
        cancel() {
          cancelled = true
          leave()
        },
      },
      { highWaterMark: 0 },
    )
  }
}

function responseOf({ status, headers, body }: Answer): Response {
  return new Response(body, { status, headers })
}

async function receive({ maxBytes, accept }: Plan & { kind: 'body' }, { body }: Request): Promise<Answer> {
  try {
    return await accept(body ? await readBody(body, maxBytes) : new Uint8Array())
  } catch (error) {
    return refusal(error)
  }
}

async function readBody(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the rest.
  for await (const part of body) {
    length += part.length
    if (length > maxBytes) throw tooLarge(maxBytes)
    parts.push(part)
  }
  return Buffer.concat(parts, length)
}
