import type { RequestHead } from './route.ts'
import { parseTarget } from './target.ts'

/** The head of a request of the fetch standard, as routing needs it. */
export function fetchHead({ method, url, headers }: Request): Pick<RequestHead, 'method' | 'target' | 'header'> {
  return { method, target: parseTarget(url), header: (name) => headers.get(name) ?? undefined }
}
