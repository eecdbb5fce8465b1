import { RejoinError } from '@rejoin/protocol'
import type { errors, JWTHeaderParameters, JWTPayload, JWTVerifyOptions, JWTVerifyResult } from 'jose'
import { badRule, type Identity, notGood } from './identity.ts'
import { readJwtKey } from './jwt-key.ts'
import type { KeySet, KeySetContext } from './key-set.ts'
import { checkPatterns } from './rights.ts'
import type { JwtRule } from './rules.ts'

/**
 * Checks tokens by the rules (RFC 8725). Rejects with `unauthorized` when no rule accepts a token. The reason is told only for a
 * token with a good signature.
 */
export function createJwtCheck(
  rules: readonly JwtRule[],
  context: KeySetContext,
): (token: string) => Promise<Identity> {
  const checks = rules.map((rule) => checkBy(rule, context))

  return async (token) => {
    let reason: string | undefined
    let unchecked: unknown
    for (const check of checks) {
      try {
        const result = await check(token)
        if (typeof result === 'object') return result
        reason ??= result
      } catch (error) {
        // The next rule may still accept the token.
        unchecked ??= error
      }
    }
    if (reason === undefined && unchecked !== undefined) throw unchecked
    throw notGood(reason ?? 'The token or key is not one that this hub knows. Check its key, algorithm and spelling.')
  }
}

/** Gives the identity; a text, the reason, for a token that is signed by the rule's key but not good; undefined for any other. */
type Check = (token: string) => Promise<Identity | string | undefined>

function checkBy(rule: JwtRule, context: KeySetContext): Check {
  const { issuer, audience, typ, claim = 'rejoin', gives = ['subscribe', 'publish'] } = rule
  if (rule.jwks !== undefined && (issuer === undefined || audience === undefined)) {
    throw badRule(
      'A rule with "jwks" needs "issuer" and "audience": its keys sign for other programs too, and their tokens are not for here.',
    )
  }
  const { key, algorithms } = readJwtKey(rule, context)
  const options: JWTVerifyOptions = {
    algorithms: [...algorithms],
    requiredClaims: ['exp', 'sub'],
    // Seconds, for issuers whose clock is a little ahead. The expiry is checked again without tolerance, where the grant is used.
    clockTolerance: 5,
    ...(issuer === undefined ? {} : { issuer: typeof issuer === 'string' ? issuer : [...issuer] }),
    ...(audience === undefined ? {} : { audience: typeof audience === 'string' ? audience : [...audience] }),
    ...(typ === undefined ? {} : { typ }),
  }

  async function verify(token: string): Promise<JWTVerifyResult> {
    const { jwtVerify } = await import('jose')
    const now = { ...options, currentDate: new Date(context.now()) }
    return 'readAgain' in key ? verifyBySet(token, key, now) : jwtVerify(token, key, now)
  }

  return async (token) => {
    try {
      const { payload, protectedHeader } = await verify(token)
      if (typ === undefined) checkUsualType(protectedHeader)
      if (audience === undefined && payload.aud !== undefined) throw notGood('The token is for another audience.')
      const rights = readRights(payload[claim], claim)
      return {
        ...readClaims(payload, context.now()),
        grant: {
          subject: readSubject(payload.sub),
          subscribe: gives.includes('subscribe') ? rights.subscribe : [],
          publish: gives.includes('publish') ? rights.publish : [],
          expiresAt: (payload.exp as number) * 1000,
        },
      }
    } catch (error) {
      return reasonOf(error)
    }
  }
}

/**
 * Verifies a token by a key set. A token that names no key (`kid`) may be signed by any key that fits, and while an issuer
 * changes its key, there are two.
 */
async function verifyBySet(token: string, keys: KeySet, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
  try {
    return await verifyByEach(token, keys, options)
  } catch (error) {
    const { decodeProtectedHeader } = await import('jose')
    const mayBeNew = codeOf(error) === badSignature && decodeProtectedHeader(token).kid === undefined
    if (mayBeNew && (await keys.readAgain())) return verifyByEach(token, keys, options)
    throw error
  }
}

async function verifyByEach(token: string, { find }: KeySet, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
  const { jwtVerify } = await import('jose')
  try {
    return await jwtVerify(token, find, options)
  } catch (error) {
    if (codeOf(error) !== 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') throw error
    let failure = error
    for await (const key of error as errors.JWKSMultipleMatchingKeys) {
      try {
        return await jwtVerify(token, key, options)
      } catch (cause) {
        failure = cause
        // Another key has signed it, or nobody. With a good signature, no other key can help.
        if (codeOf(cause) !== badSignature) throw cause
      }
    }
    throw failure
  }
}

const badSignature = 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED'

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code
}

// A revocation covers tokens by the time of their issue. A token from far in the future would escape it.
const maxAheadMs = 60_000

/** Rejects a token that was made for another use, such as `logout+jwt` or `dpop+jwt` (RFC 8725 §3.11). */
function checkUsualType({ typ }: JWTHeaderParameters): void {
  if (typ === undefined || /^(?:application\/)?(?:at\+)?jwt$/i.test(typ)) return
  throw notGood('The token is of another type.')
}

function readClaims({ iat, jti }: JWTPayload, now: number): Pick<Identity, 'issuedAt' | 'jti'> {
  if (jti !== undefined && typeof jti !== 'string') throw notGood('The jti of the token is no text.')
  if (iat !== undefined && iat * 1000 > now + maxAheadMs) {
    throw notGood('The token was issued in the future. Set the clocks of its issuer and of this hub.')
  }
  return { ...(iat === undefined ? {} : { issuedAt: iat * 1000 }), ...(jti === undefined ? {} : { jti }) }
}

export const expired = 'The token has expired. Get a new one.'

/** Subjects become parts of keys and log lines, so they are bounded and printable. Subjects with `key:` belong to API keys. */
function readSubject(sub: unknown): string {
  const isName = typeof sub === 'string' && /^[^\u0000-\u001f\u007f-\u009f]{1,256}$/.test(sub) && sub.isWellFormed()
  if (isName && !sub.startsWith('key:')) return sub
  throw notGood('The sub of the token cannot be used: it is 1 to 256 printable characters, not starting with "key:".')
}

function readRights(rights: unknown, claim: string): { subscribe: readonly string[]; publish: readonly string[] } {
  if (rights === undefined) return { subscribe: [], publish: [] }
  const unusable = (problem: string) => notGood(`The claim ${JSON.stringify(claim)} of the token is no use. ${problem}`)
  if (typeof rights !== 'object' || rights === null || Array.isArray(rights)) {
    throw unusable('It has to be an object such as {"subscribe": ["orders/*"]}.')
  }
  const { subscribe, publish } = rights as Record<string, unknown>
  try {
    return { subscribe: checkPatterns(subscribe), publish: checkPatterns(publish) }
  } catch (cause) {
    throw unusable((cause as RejoinError).message)
  }
}

/** Why a token with a good signature is rejected; undefined for others. Throws when it cannot be checked, as without keys. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof RejoinError) {
    if (error.code === 'unauthorized') return error.message
    throw error
  }
  const { code, claim } = error as { code?: unknown; claim?: unknown }
  if (code === 'ERR_JWT_EXPIRED') return expired
  // jose checks claims after the signature, so only an owner of a signed token learns this.
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED') {
    return `The ${String(claim)} of the token is missing or not what this hub takes.`
  }
  return undefined
}
