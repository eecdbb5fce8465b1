import type { IncomingMessage } from 'node:http'

/**
 * The target of a request: its path and query, taken apart without normalising. `..` and `//` have to reach the channel
 * check as the client sent them.
 */
export class Target {
  /** As the client sent it, without a scheme and a host. */
  readonly path: string
  /** The first segment of the path, by which the kinds of requests are told apart; '' when the path has none. */
  readonly endpoint: string
  readonly #queryText: string
  #query: URLSearchParams | undefined

  constructor(path: string, queryText: string) {
    this.path = path
    this.endpoint = firstSegment(path)
    this.#queryText = queryText
  }

  /** Parsed when it is asked for: a publish has none, and an empty `URLSearchParams` costs as much as the path. */
  get query(): URLSearchParams {
    this.#query ??= this.#queryText === '' ? emptyQuery : new URLSearchParams(this.#queryText)
    return this.#query
  }

  /** Whether the query could hold this parameter, without parsing the query. */
  mayHave(parameter: string): boolean {
    return this.#queryText.includes(`${parameter}=`)
  }

  /** The rest of the path behind the endpoint and its slash, percent-decoded; '' when nothing follows. */
  get rest(): string {
    const rest = this.path.slice(this.endpoint.length + 2)
    if (!rest.includes('%')) return rest
    try {
      return decodeURIComponent(rest)
    } catch {
      // Not percent-encoded UTF-8. No valid channel has a lone surrogate, so the channel check rejects it with its advice.
      return '\ud800'
    }
  }

  /** The target as seen from below `basePath`. Its endpoint is '' when the path is not below it. */
  below(basePath: string): Target {
    const base = basePath.replace(/\/$/, '')
    if (base === '') return this
    return new Target(this.path.startsWith(`${base}/`) ? this.path.slice(base.length) : '', this.#queryText)
  }
}

// Most readers ask with a path alone, and the target of each is kept for as long as it reads.
const emptyQuery = new URLSearchParams()

/** Not by `new URL()`: that normalises the path, and throws for targets that a client is free to send, such as `//`. */
export function parseTarget(url: string): Target {
  // RFC 9112, section 3.2.2: a target may name a host.
  const relative = url[0] === '/' ? url : url.replace(/^https?:\/\/[^/?#]*/i, '') || '/'
  const mark = relative.indexOf('?')
  return mark === -1 ? new Target(relative, '') : new Target(relative.slice(0, mark), relative.slice(mark + 1))
}

/**
 * The target of a request of Node. It is taken apart once and kept on the request, because every step that looks at a
 * request asks for it. A router that changes `url`, as Express does below a mount, gets a new one.
 */
export function targetOf(request: Pick<IncomingMessage, 'url'>): Target {
  const kept = request as KeptTarget
  const url = request.url ?? '/'
  if (kept[keptUrl] !== url || kept[keptTarget] === undefined) {
    kept[keptUrl] = url
    kept[keptTarget] = parseTarget(url)
  }
  return kept[keptTarget]
}

const keptUrl = Symbol('url')
const keptTarget = Symbol('target')

interface KeptTarget {
  [keptUrl]?: string
  [keptTarget]?: Target
}

function firstSegment(path: string): string {
  if (path[0] !== '/') return ''
  const end = path.indexOf('/', 1)
  return end === -1 ? path.slice(1) : path.slice(1, end)
}
