import { randomBytes } from 'node:crypto'
import { RejoinError } from '@rejoin/protocol'
import { type ProbeHello, type ProbeScript, probeChannel } from './probe.ts'
import { type Reading, readStream } from './reading.ts'
import type { Answer, Wire } from './wire.ts'

/** How the doctor reaches the server. */
export interface Way {
  readonly wire: Wire
  /** The address of the hub, without a slash at the end. */
  readonly base: string
  /** Sent with every request: the token, if there is one. */
  readonly headers: Readonly<Record<string, string>>
}

/** A probe that is under way. */
export interface OpenProbe {
  readonly token: string
  readonly answer: Answer
  readonly reading: Reading
  /** The hub's account of the request; undefined when the stream ended before its first frame. */
  hello(): Promise<ProbeHello | undefined>
}

export interface ProbeRequest {
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  /** Statuses other than 200 that the check can judge. Any other status rejects. */
  readonly statuses?: readonly number[]
}

export async function openProbe(way: Way, script: ProbeScript, request: ProbeRequest = {}): Promise<OpenProbe> {
  const { token = newToken(), headers = {}, query = {}, statuses = [] } = request
  const answer = await way.wire.open(withQuery(`${way.base}${probePath(script, token)}`, query), {
    headers: { ...streamRequest, ...way.headers, ...headers },
  })
  if (answer.status !== 200 && !statuses.includes(answer.status)) throw await rejection(answer, way.base)
  return probeOf(token, answer)
}

export function probeOf(token: string, answer: Answer): OpenProbe {
  const reading = readStream(answer)
  return {
    token,
    answer,
    reading,
    hello: async () => helloIn((await reading.until(({ type }) => type === 'probe'))?.data),
  }
}

export function probePath(script: ProbeScript | 'seen', token: string): string {
  return `/events/${probeChannel}/${script}/${token}`
}

export function withQuery(address: string, query: Readonly<Record<string, string>>): URL {
  const url = new URL(address)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url
}

export function newToken(): string {
  return randomBytes(8).toString('hex')
}

/** The headers of a browser's request for a stream, but without compression: one check asks for that. */
export const streamRequest = {
  accept: 'text/event-stream',
  'cache-control': 'no-cache',
  'accept-encoding': 'identity',
  'user-agent': 'rejoin-doctor',
}

/** Why there is no stream; with the hub's own message if the hub rejected the request. */
export async function rejection(answer: Answer, address: string): Promise<RejoinError> {
  const { status, headers } = answer
  const { error } = Object(await jsonOf(answer)) as { error?: { message?: unknown } }
  const message =
    typeof error?.message === 'string'
      ? `The hub at ${address} rejects the probe: ${error.message}`
      : `${address} answers a probe with status ${status} (${headers.get('content-type') ?? 'no content type'}), and no hub said so.`
  const code = ({ 401: 'unauthorized', 403: 'forbidden', 429: 'rate-limited', 404: 'not-found' } as const)[status]
  return new RejoinError(message, { code: code ?? 'unreachable', retryable: status === 429 || status >= 500 })
}

export async function jsonOf(answer: Answer): Promise<unknown> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of answer.body) {
    parts.push(part)
    bytes += part.length
    if (bytes > 65_536) answer.close()
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString())
  } catch {
    // Not JSON: most likely an error page of a proxy.
    return undefined
  }
}

function helloIn(data: string | undefined): ProbeHello | undefined {
  if (data === undefined) return undefined
  try {
    const hello: Partial<ProbeHello> = Object(JSON.parse(data))
    return typeof hello.serial === 'string' && typeof hello.heartbeatMs === 'number' ? (hello as ProbeHello) : undefined
  } catch {
    // A proxy has changed the frame, or it comes from another server.
    return undefined
  }
}
