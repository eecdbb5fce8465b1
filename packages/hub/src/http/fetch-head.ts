import type { RequestHead } from './route.ts'

/** What a request of the fetch standard tells of itself. */
export function fetchHead({ method, url, headers }: Request): Pick<RequestHead, 'method' | 'url' | 'header'> {
  return { method, url, header: (name) => headers.get(name) ?? undefined }
}
