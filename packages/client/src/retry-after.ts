/** The wait in ms that a `Retry-After` header asks for, as seconds or as a date (RFC 9110 §10.2.3); 0 when it asks none. */
export function readRetryAfter(value: string | null, now: number): number {
  const ms = Number(value) * 1000 || Date.parse(value ?? '') - now
  // Not a number when it is neither, which asks for nothing.
  return Math.max(ms || 0, 0)
}
