import { plainText } from '../announce/plain-text.ts'
import { durationWords } from '../output/duration.ts'
import type { TokenExplanation } from './token-explain.ts'

/** The explanation of a token for a person. */
export function explanationLines(explanation: TokenExplanation, now: number): string[] {
  const { kind, verdict, reasons, header, claims, rights, expiresAt } = explanation
  return [
    row('verdict', verdicts[verdict]),
    ...reasons.map((reason) => row('because', plainText(reason, 500))),
    row('kind', kind === 'jwt' ? `JWT, ${plainText(String(header?.alg))}` : kind === 'key' ? 'API key' : 'unknown'),
    ...(rights ? [row('subject', plainText(rights.subject)), row('may read', list(rights.subscribe))] : []),
    ...(rights ? [row('may publish', list(rights.publish))] : []),
    ...(kind === 'unknown' ? [] : [row('expires', expiry(kind, expiresAt, now))]),
    ...Object.entries(claims ?? {}).map(([name, value]) =>
      row(`claim ${plainText(name, 40)}`, plainText(JSON.stringify(value))),
    ),
  ]
}

const verdicts: Record<TokenExplanation['verdict'], string> = {
  good: 'good: a hub with these settings takes it, unless it was revoked there',
  refused: 'refused',
  unchecked: 'not checked: these settings have no access.jwt, so anybody can have written what follows',
}

function row(name: string, text: string): string {
  return `${name.padEnd(14)}${text}`
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
