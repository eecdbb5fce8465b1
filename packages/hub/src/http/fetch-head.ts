import type { RequestHead } from './route.ts'
import { parseTarget } from './target.ts'

/** What a request of the fetch standard tells of itself. */
export function fetchHead({ method, url, headers }: Request): Pick<RequestHead, 'method' | 'target' | 'header'> {
  return { method, target: parseTarget(url), header: (name) => headers.get(name) ?? undefined }
}
