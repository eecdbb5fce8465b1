import { plainText } from '@rejoin/hub/internal'
import { durationWords } from '../../logging/duration.ts'
import { table } from '../../logging/table.ts'
import type { TokenExplanation } from './token-explain.ts'

/** The explanation of a token for a person. */
export function explanationLines(explanation: TokenExplanation, now: number): string[] {
  const { kind, verdict, reasons, header, claims, rights, expiresAt } = explanation
  const rows: string[][] = [
    ['verdict', verdicts[verdict]],
    ...reasons.map((reason) => ['because', plainText(reason, 500)]),
    ['kind', kind === 'jwt' ? `JWT, ${plainText(String(header?.alg))}` : kind === 'key' ? 'API key' : 'unknown'],
  ]
  if (rights) {
    rows.push(['subject', plainText(rights.subject)])
    rows.push(['may read', list(rights.subscribe)], ['may publish', list(rights.publish)])
  }
  if (kind !== 'unknown') rows.push(['expires', expiry(kind, expiresAt, now)])
  for (const [name, value] of Object.entries(claims ?? {}))
    rows.push([`claim ${plainText(name, 40)}`, plainText(JSON.stringify(value))])
  return table(rows)
}

const verdicts: Record<TokenExplanation['verdict'], string> = {
  good: 'good: a hub with these settings takes it, unless it was revoked there',
  rejected: 'rejected',
  unchecked: 'not checked: these settings have no access.jwt, so anybody can have written what follows',
}

function list(patterns: readonly string[]): string {
  return patterns.length === 0 ? 'nothing' : patterns.map((pattern) => plainText(pattern)).join(', ')
}

function expiry(kind: TokenExplanation['kind'], expiresAt: number | undefined, now: number): string {
  if (expiresAt === undefined) return kind === 'jwt' ? 'not said' : 'never'
  const awayMs = expiresAt - now
  const words = awayMs > 0 ? `in ${durationWords(awayMs)}` : `${durationWords(-awayMs)} ago`
  // A claim can hold a number that is no date.
  const date = Math.abs(expiresAt) <= 8.64e15 ? new Date(expiresAt).toISOString() : String(expiresAt)
  return `${words} (${date})`
}
