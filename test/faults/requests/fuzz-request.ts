/**
 * Requests as nobody in their right mind sends them, and as attackers do: the routes of the program with methods, queries,
 * headers and bodies that fit, nearly fit or do not fit at all, and now and then bytes that are no HTTP.
 */
export function createFuzzer({ random, routes, credentials }: FuzzerOptions): () => Buffer {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item
  const chance = (share: number) => random() < share
  const upTo = (limit: number) => Math.floor(random() * limit)

  function bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => upTo(256)))
  }

  function word(): string {
    if (chance(0.7)) return pick(words)
    const length = chance(0.05) ? upTo(20_000) : upTo(40)
    return Array.from({ length: Math.min(length, 400) }, () => String.fromCharCode(33 + upTo(94))).join('')
  }

  function target(pattern: string): string {
    const path = pattern.replace('{channel}', () => (chance(0.7) ? pick(channels) : encodeURIComponent(word())))
    const mutated = chance(0.2)
      ? pick([`/${path}`, `${path}/`, `${path}/${word()}`, `${path}%`, path.slice(1), '*'])
      : path
    const fields = Array.from({ length: chance(0.5) ? 0 : upTo(6) }, () => {
      const value = chance(0.5) ? pick(channels) : word()
      return `${pick(parameters)}=${chance(0.8) ? encodeURIComponent(value) : value.replaceAll(' ', '+')}`
    })
    return fields.length === 0 ? mutated : `${mutated}?${fields.join('&')}`
  }

  function body(): Buffer {
    const kind = random()
    if (kind < 0.3) return Buffer.from(JSON.stringify(envelope()))
    if (kind < 0.4) return Buffer.from(JSON.stringify(Array.from({ length: upTo(5) }, envelope)))
    if (kind < 0.45) return Buffer.from(`${'['.repeat(upTo(5000))}${']'.repeat(upTo(5000))}`)
    if (kind < 0.5)
      return Buffer.from('{"__proto__":{"channel":"a"},"constructor":{"prototype":{}},"channel":"a","data":1}')
    if (kind < 0.52) return Buffer.alloc(250_000 + upTo(30_000), 'x')
    return kind < 0.8 ? Buffer.from(word()) : bytes(upTo(200))
  }

  function envelope(): unknown {
    const value = () => pick<unknown>([word(), 1, null, true, {}, [], { a: word() }, '\ud800', 'a\r\nevent: b'])
    return Object.fromEntries(
      Array.from({ length: upTo(5) }, () => [pick(envelopeKeys), chance(0.6) ? pick(channels) : value()]),
    )
  }

  function headers(length: number): string[] {
    const lines = [`Host: ${chance(0.9) ? 'localhost' : word()}`]
    for (let count = upTo(4); count > 0; count -= 1) lines.push(`${pick(headerNames)}: ${word()}`)
    if (chance(0.7)) lines.push(`Authorization: ${pick(credentials)}`)
    if (chance(0.9))
      lines.push(length > 0 || chance(0.5) ? `Content-Length: ${chance(0.95) ? length : upTo(1e6)}` : 'X: x')
    else if (chance(0.5)) lines.push('Transfer-Encoding: chunked')
    return lines
  }

  return () => {
    if (chance(0.01)) return bytes(upTo(500))
    const content = chance(0.6) ? body() : Buffer.alloc(0)
    const route = pick(routes)
    const method = chance(0.8) ? route.method : pick(methods)
    const head = [`${method} ${target(route.path)} HTTP/1.${chance(0.95) ? 1 : 0}`, ...headers(content.length)].join(
      '\r\n',
    )
    return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), content])
  }
}

export interface FuzzerOptions {
  random(): number
  /** What the program answers. */
  readonly routes: readonly FuzzedRoute[]
  /** Values of `Authorization`. */
  readonly credentials: readonly string[]
}

export interface FuzzedRoute {
  readonly method: string
  /** With `{channel}` where there is one. */
  readonly path: string
}

const methods = [
  'GET',
  'POST',
  'HEAD',
  'OPTIONS',
  'PUT',
  'DELETE',
  'PATCH',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'BREW',
  'get',
]
const channels = ['public/a', 'public/b', 'private/a', 'a', 'public/*', '*', 'a/../b', '//', 'ü/☃', 'x'.repeat(300)]
const parameters = [
  ...['channel', 'type', 'lastEventId', 'lastEventID', 'cursor', 'replay', 'added', 'heartbeat', 'clientId', 'attempt'],
  ...['reject', 'wait', 'waitMs', 'ticket', 'tab', 'n', 'ms', 'shape', 'prefix', 'limit', 'after', '__proto__', ''],
]
const headerNames = [
  ...['Last-Event-ID', 'Cookie', 'Origin', 'Referer', 'Content-Type', 'Idempotency-Key', 'X-Forwarded-For', 'Accept'],
  ...[
    'Access-Control-Request-Method',
    'Access-Control-Request-Headers',
    'Expect',
    'Upgrade',
    'Connection',
    'User-Agent',
  ],
  ...['X-Forwarded-Last-Event-Id', 'Range', 'If-None-Match', 'Content-Encoding', 'Accept-Encoding', 'Sec-Fetch-Site'],
]
const envelopeKeys = [
  'channel',
  'type',
  'data',
  'text',
  'key',
  'forget',
  'live',
  'end',
  'subject',
  'connection',
  'other',
]
const words = [
  ...['', '0', '-1', '1', '1e309', '9007199254740993', 'NaN', 'null', 'true', 'earliest', 'status', 'event', 'demo'],
  ...[
    '01HZZZZZZZZZZZZZZZZZZZZZZZ',
    '00000000000000000000000000',
    '7ZZZZZZZZZZZZZZZZZZZZZZZZZ',
    'v9:x',
    'a, b',
    '"',
    "'",
  ],
  ...['http://localhost', 'https://evil.example', 'null', '100-continue', 'websocket', 'keep-alive', 'upgrade', 'GET'],
  ...['application/json', 'text/event-stream', '%00', '%0d%0aX: y', '%F0%28%8C%28', '../../etc/passwd', '{{7*7}}'],
  ...["' OR 1=1 --", '<script>', 'rejoin=x; a=b', 'bytes=0-', 'gzip', 'aaaaaaaa', '\u00ff\u00fe'],
]
