import { RejoinError } from '@rejoin/protocol'
import { type ProbeHello, probeChannel, probeId } from './probe.ts'
import {
  newToken,
  type OpenProbe,
  probeOf,
  probePath,
  rejection,
  streamRequest,
  type Way,
  withQuery,
} from './probe-client.ts'
import { type ProxyName, proxyOf } from './proxy-name.ts'
import { remedyFor } from './remedies.ts'
import type { Check, Server } from './report.ts'
import { type Answer, createWire } from './wire.ts'
import { within } from './within.ts'

/** The server that the first requests of the doctor found. */
export type FoundServer = FoundProgram | FoundStream

/** `rejoin serve`, which answers probes. The first probe, which carries both cursors, is under way. */
export interface FoundProgram {
  readonly way: Way
  readonly server: Server
  readonly redirect: Check
  readonly probe: OpenProbe
  readonly askedAt: number
  readonly hello: ProbeHello
  /** The cursors that were sent. */
  readonly sent: { readonly header: string; readonly query: string }
}

/** A stream of another server, at the address that was given. */
export interface FoundStream {
  readonly way: Way
  readonly server: Pick<Server, 'proxy' | 'proxyText'>
  readonly redirect: Check
  readonly stream: URL
}

export interface FindOptions {
  /** Sent as `Authorization: Bearer`. Probes need no token; other streams may. */
  readonly token?: string | undefined
  /** The proxy in front of the server, if it does not show itself. */
  readonly proxy?: ProxyName | undefined
}

/** Asks for a probe first, and else for a stream. Rejects with a `RejoinError` when no stream answers. */
export async function findServer(url: URL, options: FindOptions): Promise<FoundServer> {
  const headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }
  const token = newToken()
  const sent = { header: probeId(token, 1000), query: probeId(token, 2000) }
  const path = probePath('spaced', token)
  const request = { ...streamRequest, ...headers, 'last-event-id': sent.header }
  const askedAt = performance.now()
  const asked = await follow(withQuery(`${baseOf(url)}${path}`, { lastEventId: sent.query }), request)
  const { answer, way } = asked
  const server = serverOf(answer, options)
  if (answer.status === 200 && isStream(answer) && asked.url.pathname.endsWith(path)) {
    const probe = probeOf(token, answer)
    // A hub without probes takes this for an ordinary channel: it sends `hello`, and then waits for events.
    const first = await within(
      probe.reading.until(() => true),
      firstEventMs,
    )
    const hello = first?.type === 'probe' ? await probe.hello() : undefined
    if (hello) {
      const base = asked.url.href.slice(0, asked.url.href.indexOf(path))
      const program: Server = { kind: 'program', version: hello.version, ...server }
      const redirect = redirectCheck(asked, base, server)
      const kept = asked.url.origin === url.origin ? headers : {}
      return { way: { ...way, base, headers: kept }, server: program, redirect, probe, askedAt, hello, sent }
    }
    answer.close()
    if (first?.type === 'close') throw closedToReaders(url, first.data)
  }
  // The hub's own message, if the hub rejected the probe.
  const why = answer.status === 200 || answer.status === 404 ? undefined : await rejection(answer, url.origin)
  answer.close()
  return findStream(url, headers, options, why)
}

async function findStream(
  url: URL,
  headers: Way['headers'],
  options: FindOptions,
  why: RejoinError | undefined,
): Promise<FoundStream> {
  const { answer, way, ...asked } = await follow(url, { ...streamRequest, ...headers })
  answer.close()
  if (answer.status !== 200 || !isStream(answer)) throw why ?? noStream(url, answer)
  const server = serverOf(answer, options)
  const kept = asked.url.origin === url.origin ? headers : {}
  const redirect = redirectCheck(asked, asked.url.href, server)
  return { way: { ...way, base: asked.url.origin, headers: kept }, server, redirect, stream: asked.url }
}

// A proxy that holds the whole probe back releases it after two seconds, when the hub ends it.
const firstEventMs = 8000

/** The address of the hub. Takes the address of a stream, which readers know, and that of the hub, which operators know. */
function baseOf({ origin, pathname }: URL): string {
  const [base = ''] = pathname.split(/\/(?:events|stream|poll)(?:\/|$)/)
  return `${origin}${base.replace(/\/+$/, '')}`
}

interface Followed {
  readonly url: URL
  readonly from: URL
  readonly answer: Answer
  readonly way: Pick<Way, 'wire'>
}

async function follow(from: URL, headers: Readonly<Record<string, string>>): Promise<Followed> {
  let url = from
  for (let hops = 0; hops <= mostRedirects; hops += 1) {
    const wire = await createWire(url)
    const answer = await wire.open(url, { headers: url.origin === from.origin ? headers : withoutToken(headers) })
    const location = answer.status >= 300 && answer.status < 400 ? answer.headers.get('location') : undefined
    if (location === undefined || !URL.canParse(location, url.href)) return { url, from, answer, way: { wire } }
    answer.close()
    url = new URL(location, url)
    if (!/^https?:$/.test(url.protocol)) break
  }
  throw new RejoinError(`${from.origin} redirects to nowhere. Look at its redirects with: curl -sIL ${from.origin}`, {
    code: 'unreachable',
  })
}

const mostRedirects = 5

/** A redirect to another origin must not carry the token there. */
function withoutToken(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { authorization: _, ...others } = headers
  return others
}

function redirectCheck(
  { url, from }: Pick<Followed, 'url' | 'from'>,
  better: string,
  server: Pick<Server, 'proxy' | 'proxyText'>,
): Check {
  const name = 'redirect'
  if (url.href === from.href) return { name, state: 'good', summary: 'none' }
  const { changes, ...remedy } = remedyFor(name, server)
  const use = { where: 'your pages and programs', lines: [`use the address ${better}`] }
  return {
    name,
    state: 'fault',
    summary: `streams are redirected to ${better}`,
    remedy: { ...remedy, changes: [use, ...changes] },
  }
}

function serverOf({ headers }: Answer, { proxy }: FindOptions): Pick<Server, 'proxy' | 'proxyText'> {
  if (proxy) return { proxy }
  const found = proxyOf(headers)
  return found ? { proxy: found.name, proxyText: found.text } : {}
}

function isStream({ headers }: Answer): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') ?? false
}

function noStream(url: URL, { status, headers }: Answer): RejoinError {
  const code = ({ 401: 'unauthorized', 403: 'forbidden' } as const)[status] ?? 'not-found'
  const advice =
    code !== 'not-found' || url.pathname.includes(probeChannel)
      ? ''
      : ' Give the address of a hub, or of a stream: https://hub.example/events/demo'
  return new RejoinError(
    `${url.href} is no event stream: it answers with status ${status} and ${headers.get('content-type') ?? 'no content type'}.${advice}`,
    { code },
  )
}

function closedToReaders(url: URL, data: string): RejoinError {
  return new RejoinError(`${url.origin} lets no reader in at the moment: ${data.slice(0, 100)}. Try again later.`, {
    code: 'overloaded',
    retryable: true,
  })
}
