/** A request's path and query, taken apart without normalising: `..` and `//` must reach the channel check as they came. */
export interface Target {
  readonly path: string
  readonly query: URLSearchParams
}

export function parseTarget(url: string): Target {
  const relative = url.replace(/^https?:\/\/[^/?#]*/i, '')
  const mark = relative.indexOf('?')
  if (mark === -1) return { path: relative, query: new URLSearchParams() }
  return { path: relative.slice(0, mark), query: new URLSearchParams(relative.slice(mark + 1)) }
}

/** The path without what stands before the hub's own; '' when it is not below that. */
export function pathUnder(basePath: string, path: string): string {
  const base = basePath.replace(/\/$/, '')
  return path.startsWith(`${base}/`) ? path.slice(base.length) : ''
}

/** What stands behind `/<route>/`, percent-decoded; undefined when the path is another's, '' when nothing follows. */
export function below(route: string, path: string): string | undefined {
  if (path === `/${route}`) return ''
  if (!path.startsWith(`/${route}/`)) return undefined
  const rest = path.slice(route.length + 2)
  try {
    return decodeURIComponent(rest)
  } catch {
    // Not percent-encoded UTF-8. A lone surrogate is in no valid name, so the name check refuses it with its own advice.
    return '\ud800'
  }
}
