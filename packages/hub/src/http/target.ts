import type { IncomingMessage } from 'node:http'

/** The target of a request: its path and query. Nothing is normalised, because the channel check has to see `..` and `//`. */
export class Target {
  /** The path as the client sent it, without scheme and host. */
  readonly path: string
  /** The first segment of the path, which says what kind of request it is; '' when the path has none. */
  readonly endpoint: string
  readonly #queryText: string
  #query: URLSearchParams | undefined

  constructor(path: string, queryText: string) {
    this.path = path
    this.endpoint = firstSegment(path)
    this.#queryText = queryText
  }

  /** Parsed on demand: a publish has no query, and an empty `URLSearchParams` costs as much as parsing the path. */
  get query(): URLSearchParams {
    this.#query ??= this.#queryText === '' ? emptyQuery : new URLSearchParams(this.#queryText)
    return this.#query
  }

  /** Whether the query can hold this parameter; false is certain, true is not. Spares parsing the query. */
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
      // Not percent-encoded UTF-8. The channel check rejects a lone surrogate, with advice, because no valid channel has one.
      return '\ud800'
    }
  }

  /** The target without the prefix `basePath`. Its endpoint is '' when the path is not below `basePath`. */
  below(basePath: string): Target {
    const base = basePath.replace(/\/$/, '')
    if (base === '') return this
    return new Target(this.path.startsWith(`${base}/`) ? this.path.slice(base.length) : '', this.#queryText)
  }
}

// Shared: most readers send no query, and the target of each reader is kept for as long as it reads.
const emptyQuery = new URLSearchParams()

/** Does not use `new URL()`, which normalises the path, and throws for targets that a client may send, such as `//`. */
export function parseTarget(url: string): Target {
  // RFC 9112, section 3.2.2: a target may name a host.
  const relative = url[0] === '/' ? url : url.replace(/^https?:\/\/[^/?#]*/i, '') || '/'
  const mark = relative.indexOf('?')
  return mark === -1 ? new Target(relative, '') : new Target(relative.slice(0, mark), relative.slice(mark + 1))
}

/**
 * The target of a Node request. It is parsed once and kept on the request, because every step asks for it. When a router changes
 * `url`, as Express does below a mount, the target is parsed again.
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
