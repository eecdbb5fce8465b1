/**
 * The wait in ms that a `Retry-After` header asks for, in seconds or as a date (RFC 9110 §10.2.3); 0 without a valid
 * header. A date is compared with the server's own `Date`, where the page may see it: the clock of the client may be
 * wrong.
 */
export function readRetryAfter(headers: Headers, now: number): number {
  const asked = headers.get('retry-after') ?? ''
  const ms = Number(asked) * 1000 || Date.parse(asked) - (Date.parse(headers.get('date') ?? '') || now)
  // NaN when the header is neither a number nor a date.
  return Math.max(ms || 0, 0)
}
