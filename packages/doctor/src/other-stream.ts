import { acceptsCompressed, compressionOf } from './checks/compression.ts'
import { corsOfHub, isAllowed } from './checks/cors.ts'
import { httpVersionCheck } from './checks/http-version.ts'
import type { FoundStream } from './find-server.ts'
import { probeId } from './probe.ts'
import { newToken, streamRequest, withQuery } from './probe-client.ts'
import { type Reading, readStream } from './reading.ts'
import { remedyFor } from './remedies.ts'
import type { Check, Server } from './report.ts'
import type { Answer } from './wire.ts'
import { within } from './within.ts'

/**
 * Examines a stream whose server answers no probes, from outside. A hub of Rejoin tells more than other servers: its `hello` says
 * which cursor arrived.
 */
export async function examineStream(
  found: FoundStream,
  { origin }: { readonly origin?: string | undefined },
): Promise<Examined> {
  const askedAt = performance.now()
  const opened = await open(found)
  const hello = await within(helloOf(opened.reading), helloWithinMs)
  const kind = hello ? 'hub' : 'other'
  const server: Server = { kind, ...found.server }
  const compressed = open(found, acceptsCompressed)
  const cors = origin === undefined ? Promise.resolve(undefined) : open(found, { origin })
  const cursors = hello ? await cursorChecks(found, server) : unknownCursors
  const second = hello ? await within(helloOf((await open(found)).reading), helloWithinMs) : undefined
  await within(opened.reading.ended, Math.max(0, askedAt + listenMs - performance.now()))
  opened.answer.close()
  const checks: Check[] = [
    streamSeen(opened.reading, askedAt, server),
    ...cursors,
    idsSeen(opened.reading),
    heartbeatsSeen(opened.reading),
    compressionOf(closed(await compressed).answer, server),
    hello ? hubCaching(hello, second, server) : headersCaching(opened.answer, server),
    { name: 'disconnect', state: 'unknown', summary: 'only the server knows' },
    silenceSeen(opened, askedAt, server),
    corsSeen((await cors)?.answer, origin, server),
    httpVersionCheck({ wire: found.way.wire, base: found.stream.href }, server),
  ]
  return { server, checks }
}

export interface Examined {
  readonly server: Server
  readonly checks: readonly Check[]
}

interface Opened {
  readonly answer: Answer
  readonly reading: Reading
}

const listenMs = 6000
const helloWithinMs = 3000

async function open(
  { way, stream }: FoundStream,
  headers: Readonly<Record<string, string>> = {},
  url = stream,
): Promise<Opened> {
  const answer = await way.wire.open(url, { headers: { ...streamRequest, ...way.headers, ...headers } })
  return { answer, reading: readStream(answer) }
}

function closed(opened: Opened): Opened {
  opened.answer.close()
  return opened
}

interface Greeting {
  readonly connection: string
  readonly requested: string | null
}

/** The `hello` of a hub (§4.4); undefined when another event comes first. */
async function helloOf(reading: Reading): Promise<Greeting | undefined> {
  const first = await reading.until(() => true)
  if (first?.type !== 'hello') return undefined
  try {
    const { connection, requested } = Object(JSON.parse(first.data))
    return typeof connection === 'string' ? { connection, requested: requested ?? null } : undefined
  } catch {
    // Another server may have events of the type `hello`, too.
    return undefined
  }
}

async function cursorChecks(found: FoundStream, server: Server): Promise<Check[]> {
  const token = newToken()
  const sent = [probeId(token, 1), probeId(token, 2)] as const
  const [byHeader, byQuery] = await Promise.all([
    open(found, { 'last-event-id': sent[0] }),
    open(found, {}, withQuery(found.stream.href, { lastEventId: sent[1] })),
  ])
  const [header, query] = await Promise.all(
    [byHeader, byQuery].map(({ reading }) => within(helloOf(reading), helloWithinMs)),
  )
  closed(byHeader)
  closed(byQuery)
  return [
    cursorSeen('header-cursor', 'Last-Event-ID', sent[0], header, server),
    cursorSeen('query-cursor', '?lastEventId=', sent[1], query, server),
  ]
}

function cursorSeen(
  name: 'header-cursor' | 'query-cursor',
  what: string,
  sent: string,
  seen: Greeting | undefined,
  server: Server,
): Check {
  if (!seen) return { name, state: 'unknown', summary: 'the hub did not greet' }
  if (seen.requested === sent) return { name, state: 'good', summary: `${what} reaches the hub` }
  return { name, state: 'fault', summary: `${what} does not reach the hub`, remedy: remedyFor(name, server) }
}

const notTold = 'this server does not say what it saw'
const unknownCursors: readonly Check[] = [
  { name: 'header-cursor', state: 'unknown', summary: notTold },
  { name: 'query-cursor', state: 'unknown', summary: notTold },
]

function streamSeen({ firstByteAt, endedAt, events }: Reading, askedAt: number, server: Server): Check {
  const name = 'stream'
  if (firstByteAt === undefined) {
    const summary = `open, and not one byte within ${listenMs / 1000} s: nothing was sent, or it is held back`
    return { name, state: 'hint', summary, remedy: remedyFor(name, server) }
  }
  const firstByteMs = Math.round(firstByteAt - askedAt)
  const summary = `first byte after ${firstByteMs} ms, ${counted(events.length, 'event')} ${listened(endedAt, askedAt)}`
  return { name, state: 'good', summary, figures: { firstByteMs, events: events.length } }
}

function idsSeen({ events }: Reading): Check {
  const name = 'ids'
  if (events.length === 0) return { name, state: 'unknown', summary: 'no event came' }
  if (events.some(({ id }) => id !== ''))
    return { name, state: 'good', summary: 'events have ids, so a reader can resume' }
  const summary = 'events have no ids: a reader that reconnects cannot say what it has'
  return {
    name,
    state: 'hint',
    summary,
    remedy: ofServer('What is sent while a reader is away is lost, and nobody is told.', [
      'id: <the position of the event>   (a line of each event)',
    ]),
  }
}

function heartbeatsSeen({ comments, events }: Reading): Check {
  const name = 'heartbeats'
  if (comments.length > 0)
    return { name, state: 'good', summary: `${counted(comments.length, 'comment')} in ${listenMs / 1000} s` }
  if (events.some(({ type }) => type === 'hello'))
    return { name, state: 'unknown', summary: `none was due in ${listenMs / 1000} s` }
  return {
    name,
    state: 'unknown',
    summary: `no comment in ${listenMs / 1000} s; a quiet stream needs one every 15 to 30 s`,
  }
}

function hubCaching({ connection }: Greeting, second: Greeting | undefined, server: Server): Check {
  const name = 'caching'
  if (!second) return { name, state: 'unknown', summary: 'the hub did not greet a second client' }
  if (second.connection !== connection) return { name, state: 'good', summary: 'each client gets an answer of its own' }
  return { name, state: 'fault', summary: 'two clients got the same answer', remedy: remedyFor(name, server) }
}

function headersCaching({ headers }: Answer, server: Server): Check {
  const name = 'caching'
  const hit =
    headers.get('age') !== undefined || /\bhit\b/i.test(`${headers.get('x-cache')} ${headers.get('cf-cache-status')}`)
  if (hit) return { name, state: 'fault', summary: 'the stream comes out of a cache', remedy: remedyFor(name, server) }
  const control = headers.get('cache-control') ?? ''
  if (/no-store|no-cache|private/.test(control)) return { name, state: 'good', summary: `Cache-Control: ${control}` }
  const lines = ['Cache-Control: no-cache, no-transform']
  const remedy = ofServer('A cache on the way may keep the stream and give it to others.', lines)
  return { name, state: 'hint', summary: 'nothing keeps caches from keeping it', remedy }
}

function silenceSeen({ answer, reading: { endedAt } }: Opened, askedAt: number, server: Server): Check {
  const name = 'silence'
  if (endedAt === undefined) return { name, state: 'good', summary: `open for ${listenMs / 1000} s` }
  const summary = `the stream ended by itself ${listened(endedAt, askedAt)}`
  // A proxy that times out breaks the answer off. Only the server can end it properly.
  const remedy = answer.isWhole() ? ofServer(endedCost, [endedAdvice]) : remedyFor(name, server)
  return { name, state: 'hint', summary, remedy }
}

const endedCost = 'Every reader reconnects, again and again.'
const endedAdvice = ': a comment every 15 to 30 s, instead of the end of the answer'

/** For how long the doctor listened. */
function listened(endedAt: number | undefined, askedAt: number): string {
  return endedAt === undefined ? `in ${listenMs / 1000} s` : `within ${((endedAt - askedAt) / 1000).toFixed(1)} s`
}

function corsSeen(answer: Answer | undefined, origin: string | undefined, server: Server): Check {
  const name = 'cors'
  answer?.close()
  if (!answer || origin === undefined)
    return { name, state: 'unknown', summary: 'not asked for; name a page with --origin' }
  if (isAllowed(answer.headers.get('access-control-allow-origin'), origin)) {
    return { name, state: 'good', summary: `pages of ${origin} may read` }
  }
  const remedy =
    server.kind === 'hub'
      ? corsOfHub(origin)
      : ofServer('Pages of this origin cannot read the stream at all.', [
          `Access-Control-Allow-Origin: ${origin}`,
          'Vary: Origin',
        ])
  return { name, state: 'fault', summary: `pages of ${origin} are not allowed`, remedy }
}

function ofServer(cost: string, lines: readonly string[]): Check['remedy'] & object {
  return { culprit: 'the server itself', cost, changes: [{ where: 'what the server sends', lines }] }
}

/** A number with its word: "1 event", "2 events". */
function counted(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}
