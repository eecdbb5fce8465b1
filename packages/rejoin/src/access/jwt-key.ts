import { createPublicKey, type KeyObject } from 'node:crypto'
import { badRule } from './identity.ts'
import { createKeySet, type KeySet, type KeySetContext } from './key-set.ts'
import { type JwtAlgorithm, type JwtRule, jwtAlgorithms } from './rules.ts'

/** The key of a rule, and the only algorithms that it is used with (RFC 8725 §3.1). */
export interface JwtKey {
  readonly key: Uint8Array | KeyObject | KeySet
  readonly algorithms: readonly JwtAlgorithm[]
}

/** Reads the key of a rule. Throws when the key is weak, or does not fit the algorithms. */
export function readJwtKey({ secret, publicKey, jwks, algorithms }: JwtRule, context: KeySetContext): JwtKey {
  if ([secret, publicKey, jwks].filter((key) => key !== undefined).length !== 1) {
    throw badRule('A rule for tokens needs exactly one of "secret", "publicKey" and "jwks".')
  }
  if (secret !== undefined) return sharedSecret(secret, chosen(algorithms, shared, ['HS256'], 'a secret'))
  if (publicKey !== undefined) return publicPem(publicKey, algorithms)
  const keySet = createKeySet(jwks as string, context)
  return { key: keySet, algorithms: chosen(algorithms, asymmetric, ['RS256', 'ES256', 'EdDSA'], 'a key set') }
}

const shared = jwtAlgorithms.filter((name) => name.startsWith('HS'))
const asymmetric = jwtAlgorithms.filter((name) => !name.startsWith('HS'))

function sharedSecret(secret: string, algorithms: readonly JwtAlgorithm[]): JwtKey {
  const key = Buffer.from(secret)
  // RFC 7518 §3.2: a key is no shorter than its signatures, 32 bytes for HS256 and 64 for HS512.
  const minBytes = Math.max(...algorithms.map((name) => Number(name.slice(2)) / 8))
  if (key.length < minBytes) {
    throw badRule(
      `The secret for tokens has ${key.length} bytes, and ${algorithms.join(', ')} needs ${minBytes}. ${secretAdvice}`,
    )
  }
  // No measure of strength: it only finds secrets such as "changeme" typed over and over.
  if (new Set(key).size < 10) throw badRule(`The secret for tokens repeats a few characters. ${secretAdvice}`)
  if (secret.trimStart().startsWith('-----BEGIN')) {
    throw badRule(
      'The secret for tokens is a PEM key. Give a public key as "publicKey": as a secret, everybody who has it could sign.',
    )
  }
  return { key, algorithms }
}

const secretAdvice = 'Make one that nobody can guess: openssl rand -base64 48'

function publicPem(pem: string, algorithms: readonly JwtAlgorithm[] | undefined): JwtKey {
  if (pem.includes('PRIVATE KEY')) {
    throw badRule('The "publicKey" for tokens is a private key. Keep that where tokens are made: openssl pkey -pubout')
  }
  let key: KeyObject
  try {
    key = createPublicKey(pem)
  } catch (cause) {
    throw badRule('The "publicKey" for tokens is no PEM that begins with -----BEGIN PUBLIC KEY-----.', cause)
  }
  const fitting = algorithmsOf(key)
  if (fitting.length === 0) {
    throw badRule('The "publicKey" for tokens is none of RSA from 2,048 bits, P-256, P-384, P-521 and Ed25519.')
  }
  return { key, algorithms: chosen(algorithms, fitting, fitting.slice(0, 1), 'this public key') }
}

function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly JwtAlgorithm[] {
  const { modulusLength = 0, namedCurve = '' } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === 'ed25519') return ['EdDSA']
  if (asymmetricKeyType === 'ec') return curves[namedCurve] ?? []
  if (asymmetricKeyType !== 'rsa' || modulusLength < 2048) return []
  return ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
}

const curves: Record<string, readonly JwtAlgorithm[]> = {
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
}

function chosen(
  algorithms: readonly JwtAlgorithm[] | undefined,
  fitting: readonly JwtAlgorithm[],
  usual: readonly JwtAlgorithm[],
  what: string,
): readonly JwtAlgorithm[] {
  const misfit = algorithms?.find((name) => !fitting.includes(name))
  if (misfit === undefined && algorithms?.length !== 0) return algorithms ?? usual
  throw badRule(`Tokens cannot be checked with ${misfit ?? 'no algorithm'} by ${what}. Use ${fitting.join(', ')}.`)
}
