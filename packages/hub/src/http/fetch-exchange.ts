import type { Hub } from '../hub/hub.ts'
import { onAbort } from '../hub/pull/on-abort.ts'
import { createPullSink } from '../hub/pull/pull-sink.ts'
import type { Admitted, ConnectedReader } from '../hub/readers/subscribe-request.ts'
import { type Answer, bodyEvicted, rejection } from './answer.ts'
import { createBodyParts } from './body-parts.ts'
import { defaultBudgetBytes } from './options.ts'
import type { Plan } from './route.ts'

/**
 * Carries out the plan for a request, as a response of the fetch standard. Never rejects: an error is told to the hub's
 * observers, and costs this response alone.
 * @param direct - a shorter way for the bytes of a stream, if this platform has one.
 */
export type FetchExchange = (plan: Plan | Promise<Plan>, request: Request, direct?: DirectWay) => Promise<Response>

/**
 * Called when the platform asks for the first byte of a stream. Connects the reader past the `Response`, and returns a function
 * that ends this connection; undefined when that is not possible. `onGone` is called when the reader has gone, or its stream has
 * ended.
 */
export type DirectWay = (reader: Admitted, onGone: () => void) => (() => void) | undefined

/** For adapters whose framework or platform answers a `Request` with a `Response`. */
export function createFetchExchange(hub: Hub, options: { sinkBudgetBytes?: number | undefined }): FetchExchange {
  const budgetBytes = options.sinkBudgetBytes ?? defaultBudgetBytes

  return async (planned, request, direct) => {
    try {
      return await carryOut(await planned, request, direct)
    } catch (error) {
      hub.port.failed(error)
      return responseOf(rejection(error))
    }
  }

  async function carryOut(plan: Plan, request: Request, direct: DirectWay | undefined): Promise<Response> {
    if (plan.kind === 'stream') return new Response(bodyOf(plan, request.signal, direct), { headers: plan.headers })
    if (plan.kind === 'poll') return responseOf(await plan.answer({ signal: request.signal }))
    if (plan.kind === 'body') return responseOf(await receive(hub, plan, request))
    return responseOf(plan.answer)
  }

  /**
   * Connects the reader when the platform asks for the first bytes. Connected earlier, a `Response` that nobody reads, because a
   * timeout or other middleware has answered instead, would leave a session that nobody ever ends.
   *
   * The stream's own queue stays empty. Bytes wait in the sink, where they are counted, until the platform asks for more. The
   * platform asks when the connection has taken the bytes before.
   */
  function bodyOf(
    { reader }: Plan & { kind: 'stream' },
    signal: AbortSignal,
    direct: DirectWay | undefined,
  ): ReadableStream<Uint8Array> {
    let session: ConnectedReader | undefined
    let leaveDirect: (() => void) | undefined
    let stopListening: () => void = () => undefined
    let body: ReadableStreamDefaultController<Uint8Array>
    let begun = false
    let asked = false
    let over = false
    const sink = createPullSink<Uint8Array>({
      budgetBytes,
      itemsOf: ({ plain }) => [plain],
      onDrain: () => session?.drained(),
      // Fails the body at once, because the platform may never ask again. The platform then cuts the connection.
      onDestroy: (error) => body.error(error),
    })
    const taker = {
      take(bytes: Uint8Array) {
        asked = false
        body.enqueue(bytes)
      },
      end: close,
      fail: (error: unknown) => body.error(error),
    }

    function begin(): void {
      begun = true
      // A reader that left while its rights were looked up would leave a session that nobody ever ends.
      if (signal.aborted) {
        sink.end()
        return
      }
      try {
        leaveDirect = direct?.(reader, close)
        if (leaveDirect) return
        // When a reader has gone, some platforms abort the request's signal, and others cancel the body.
        stopListening = onAbort(signal, leave)
        session = hub.port.subscribe(reader, sink)
      } catch (error) {
        hub.port.failed(error)
        throw error
      }
    }

    function close(): void {
      stopListening()
      if (!over) body.close()
      over = true
    }

    function leave(): void {
      stopListening()
      leaveDirect?.()
      session?.disconnected()
      sink.stop()
    }

    return new ReadableStream<Uint8Array>(
      {
        start(controller) {
          body = controller
        },
        pull() {
          if (!begun) begin()
          if (asked || leaveDirect) return
          asked = true
          sink.ask(taker)
        },
        cancel() {
          over = true
          leave()
        },
      },
      { highWaterMark: 0 },
    )
  }
}

export function responseOf({ status, headers, body }: Answer): Response {
  return new Response(body, { status, headers })
}

async function receive(hub: Hub, { maxBytes, accept }: Plan & { kind: 'body' }, { body }: Request): Promise<Answer> {
  const parts = createBodyParts(maxBytes)
  const reader = body?.getReader()
  let isEvicted = false
  const entry = hub.port.memory.bodies.open({
    pending: 0,
    evict() {
      isEvicted = true
      parts.clear()
      // Ends the read that waits for the next part, which may never come.
      void cancel(reader)
    },
  })

  async function read(): Promise<Uint8Array> {
    for (let next = await reader?.read(); next?.value; next = await reader?.read()) {
      parts.add(next.value)
      entry.add(next.value.length)
      if (isEvicted) break
    }
    if (isEvicted) throw bodyEvicted()
    entry.pin()
    return parts.joined()
  }

  try {
    return await accept(await read())
  } catch (error) {
    // The platform need not receive the rest.
    void cancel(reader)
    return rejection(error)
  } finally {
    entry.close()
  }
}

async function cancel(reader: ReadableStreamDefaultReader | undefined): Promise<void> {
  try {
    await reader?.cancel()
  } catch {
    // A body that broke off has nothing left to cancel.
  }
}
