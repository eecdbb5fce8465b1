import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Grant, Hub } from '@rejoin/hub'
import { fetchHandler } from '@rejoin/hub/fetch'
import { asksForEvents, type FaultyNetwork, type RevocableRights } from '@rejoin/hub/internal'
import { resetRequest } from '../http/reset-request.ts'

export interface FaultyStreamsOptions {
  authorize?: ((request: IncomingMessage) => Grant | null | Promise<Grant | null>) | undefined
  readonly trustProxy: boolean
  readonly sinkBudgetBytes: number
}

/** Serves readers across a network that can be cut and slowed down. Other requests go to `others` directly, and always arrive. */
export function faultyStreams(
  hub: Hub,
  { network, rights }: { network: FaultyNetwork; rights: RevocableRights },
  { authorize = everything, trustProxy, sinkBudgetBytes }: FaultyStreamsOptions,
  others: RequestListener,
): RequestListener {
  const handler = fetchHandler<[IncomingMessage]>(hub, {
    trustProxy,
    sinkBudgetBytes,
    ip: (_, { socket }) => socket.remoteAddress,
    authorize: (_, incoming) => rights.of(credentialsOf(incoming), () => authorize(incoming)),
  })

  return (request, response) => {
    if (!asksForEvents(request)) return others(request, response)
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    // Connections are meant to break here. 'close' follows, and ends the request.
    response.on('error', () => response.destroy())
    const asked = new Request(`http://hub${request.url}`, { headers: headersOf(request), signal: gone.signal })
    network
      .carry(asked, (carried) => handler(carried, request))
      .then((answer) => send(answer, response, gone.signal))
      // The network is cut, or the reader has gone.
      .catch(() => resetRequest(request))
  }
}

/** @param signal - aborted when the response closes, which then never drains */
async function send(answer: Response, response: ServerResponse, signal: AbortSignal): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  response.flushHeaders()
  for await (const bytes of answer.body ?? []) if (!response.write(bytes)) await once(response, 'drain', { signal })
  response.end()
}

function headersOf({ headers }: IncomingMessage): Headers {
  const copied = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    // Pseudo-headers of HTTP/2 begin with a colon, and `Headers` rejects them.
    if (value !== undefined && !name.startsWith(':')) copied.set(name, [value].flat().join(', '))
  }
  return copied
}

function credentialsOf({ headers, url = '' }: IncomingMessage): string {
  const { authorization = '', cookie = '' } = headers
  const ticket = new URLSearchParams(url.slice(url.indexOf('?'))).get('ticket') ?? ''
  return [authorization, cookie, ticket].join('\n')
}

function everything(): Grant {
  return { subject: null, subscribe: ['*'], publish: ['*'] }
}
