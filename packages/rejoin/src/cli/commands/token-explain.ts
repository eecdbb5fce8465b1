import { createApiKeys, digestOf } from '../../access/api-keys.ts'
import type { Identity } from '../../access/identity.ts'
import { createJwtCheck, expired } from '../../access/jwt.ts'
import { readJwtKey } from '../../access/jwt-key.ts'
import type { AccessRules, JwtRule } from '../../access/rules.ts'

export interface TokenExplanation {
  readonly kind: 'jwt' | 'key' | 'unknown'
  /** `unchecked`: the settings have no rules for tokens. */
  readonly verdict: 'good' | 'rejected' | 'unchecked'
  /** Why each rule rejects the token, in the order of the rules. */
  readonly reasons: readonly string[]
  readonly header?: Readonly<Record<string, unknown>>
  readonly claims?: Readonly<Record<string, unknown>>
  /** The rights of the token; only when it is good. */
  readonly rights?: {
    readonly subject: string
    readonly subscribe: readonly string[]
    readonly publish: readonly string[]
  }
  /** ms since 1970. */
  readonly expiresAt?: number
}

/** The content of a token, and how a hub with these rules would judge it. Revocations on the hub are not known here. */
export async function explainToken(token: string, rules: AccessRules): Promise<TokenExplanation> {
  const { jwt = [], keys = [] } = rules
  const owner = createApiKeys(keys)(digestOf(token))
  if (owner) return { kind: 'key', verdict: 'good', reasons: [], ...rightsOf(owner) }
  const { decodeJwt, decodeProtectedHeader } = await import('jose')
  let parts: Pick<TokenExplanation, 'header' | 'claims'>
  try {
    parts = { header: decodeProtectedHeader(token), claims: decodeJwt(token) }
  } catch {
    // The error of jose is not shown, because it may quote the token.
    const reason = `It is no JWT${keys.length > 0 ? ', and none of the API keys in access.keys' : ''}.`
    return { kind: 'unknown', verdict: 'rejected', reasons: [reason] }
  }
  const { exp } = parts.claims ?? {}
  const expiresAt = typeof exp === 'number' ? { expiresAt: exp * 1000 } : {}
  const known = { kind: 'jwt', ...parts, ...expiresAt } as const
  if (jwt.length === 0) return { ...known, verdict: 'unchecked', reasons: [] }

  const reasons: string[] = []
  for (const [index, rule] of jwt.entries()) {
    const judged = await judge(token, rule, parts.header ?? {})
    if (typeof judged === 'object') return { ...known, verdict: 'good', reasons: [], ...rightsOf(judged) }
    reasons.push(jwt.length === 1 ? judged : `access.jwt ${index + 1}: ${judged}`)
  }
  return { ...known, verdict: 'rejected', reasons }
}

function rightsOf({ grant }: Identity): Pick<TokenExplanation, 'rights' | 'expiresAt'> {
  const { subject, subscribe = [], publish = [], expiresAt } = grant
  return { rights: { subject, subscribe, publish }, ...(expiresAt === undefined ? {} : { expiresAt }) }
}

/** The owner of the token, or why this rule rejects it. */
async function judge(
  token: string,
  rule: JwtRule,
  header: Readonly<Record<string, unknown>>,
): Promise<Identity | string> {
  const { algorithms } = readJwtKey(rule, context)
  if (!algorithms.some((name) => name === header.alg)) {
    return `It is signed with ${JSON.stringify(header.alg)}, and this hub takes ${algorithms.join(', ')}.`
  }
  try {
    const identity = await createJwtCheck([rule], context)(token)
    // The check tolerates a clock that is a little off; a hub does not tolerate expired rights.
    return (identity.grant.expiresAt ?? Number.POSITIVE_INFINITY) <= Date.now() ? expired : identity
  } catch (error) {
    const { message } = error as Error
    return message.startsWith('The token or key is not one') ? wrongKey(rule) : message
  }
}

function wrongKey({ secret, publicKey }: JwtRule): string {
  const key = secret !== undefined ? 'this secret' : publicKey !== undefined ? 'this public key’s owner' : 'these keys'
  return `It was not signed by ${key}, or was changed since.`
}

const context = { now: Date.now, changed: () => undefined, signal: new AbortController().signal }
