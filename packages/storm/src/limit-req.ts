import type { ResponseHead } from './response.ts'

/**
 * What `limit_req` of nginx did to a request; undefined when it did nothing, or does not tell. Our files for nginx tell in a header.
 * Other configurations show it only when they reject: nginx then answers with HTML, and a hub with JSON.
 */
export function limitReqOf({ status, headers }: ResponseHead): LimitReq | undefined {
  const told = headers.get('x-limit-req-status')
  if (told === 'DELAYED') return 'delayed'
  if (told === 'REJECTED') return 'rejected'
  const isByNginx =
    headers.get('server')?.startsWith('nginx') === true && headers.get('content-type')?.startsWith('text/html') === true
  // 503 is the default of limit_req_status. nginx itself answers 502 or 504 when a hub is away.
  return isByNginx && (status === 429 || status === 503) ? 'rejected' : undefined
}

export type LimitReq = 'delayed' | 'rejected'
