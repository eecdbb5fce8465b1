import type { ServerResponse } from 'node:http'
import type { Hub } from '../hub/hub.ts'
import type { Admitted, ConnectedReader } from '../hub/readers/subscribe-request.ts'
import { type Carried, unwatchClosing, watchClosing } from './closing-server.ts'
import { onceGone } from './connection.ts'
import type { LateHeads } from './late-heads.ts'
import { ResponseSink } from './response-sink.ts'

export interface StreamingOptions {
  readonly budgetBytes: number
  /**
   * Sends the head when the first bytes take long. The head was given to `writeHead`, and goes out with the first bytes. Left out,
   * the head is out.
   */
  readonly heads?: LateHeads | undefined
  /** Called when the reader has left, or its stream has ended. */
  readonly onGone?: (() => void) | undefined
}

/** Connects a reader to a response. */
export function streamTo(
  hub: Hub,
  admitted: Admitted,
  response: ServerResponse,
  { budgetBytes, heads, onGone }: StreamingOptions,
): void {
  const sink = new ResponseSink(response, budgetBytes, heads === undefined)
  const session = hub.port.subscribe(admitted, sink)
  sink.serve(session)
  if (sink.waitsForHead) heads?.add(sink)
  new ResponseReader(hub, session, response, onGone)
}

/** Ends the session when its response closes, and the stream when its server closes. A class, which is smaller than closures. */
class ResponseReader implements Carried {
  readonly #hub: Hub
  readonly #session: ConnectedReader
  readonly #response: ServerResponse
  readonly #onGone: (() => void) | undefined

  constructor(hub: Hub, session: ConnectedReader, response: ServerResponse, onGone: (() => void) | undefined) {
    this.#hub = hub
    this.#session = session
    this.#response = response
    this.#onGone = onGone
    watchClosing(response.req.socket, this)
    if (response.socket === null) {
      onceGone(response.req, response, () => this.gone())
    } else {
      // One listener for all responses: a closure for each would take more memory than this object.
      ;(response as Read)[reader] = this
      response.on('close', gone)
    }
  }

  closing(): void {
    this.#hub.admin.disconnectHere(this.#session.connection, { reason: 'drain' })
  }

  gone(): void {
    unwatchClosing(this.#response.req.socket, this)
    this.#session.disconnected()
    this.#onGone?.()
  }
}

const reader = Symbol('reader')

interface Read extends ServerResponse {
  [reader]?: ResponseReader | undefined
}

function gone(this: Read): void {
  this[reader]?.gone()
  this[reader] = undefined
}
