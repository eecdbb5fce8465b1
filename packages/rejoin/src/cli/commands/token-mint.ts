import { RejoinError } from '@rejoin/protocol'
import { createJwtCheck } from '../../access/jwt.ts'
import { readJwtKey } from '../../access/jwt-key.ts'
import type { JwtRule } from '../../access/rules.ts'
import { invalidOption } from '../../errors.ts'

export interface MintOptions {
  readonly subject: string
  readonly subscribe: readonly string[]
  readonly publish: readonly string[]
  readonly expiresInMs: number
}

export interface MintedToken {
  readonly token: string
  readonly claims: Readonly<Record<string, unknown>>
}

/** Signs a token with the first rule that has a secret and can give the rights, and checks that a hub will accept it. */
export async function mintToken(rules: readonly JwtRule[], options: MintOptions): Promise<MintedToken> {
  const rule = ruleFor(rules, options)
  const { key, algorithms } = readJwtKey(rule, keyContext)
  const { claim = 'rejoin', typ = 'JWT' } = rule
  const iat = Math.floor(Date.now() / 1000)
  const claims = {
    ...(rule.issuer === undefined ? {} : { iss: first(rule.issuer) }),
    ...(rule.audience === undefined ? {} : { aud: first(rule.audience) }),
    sub: options.subject,
    iat,
    exp: iat + Math.ceil(options.expiresInMs / 1000),
    [claim]: { subscribe: options.subscribe, publish: options.publish },
  }
  const { SignJWT } = await import('jose')
  const alg = algorithms[0] as string
  const token = await new SignJWT(claims).setProtectedHeader({ alg, typ }).sign(key as Uint8Array)
  await check(token, rule)
  return { token, claims }
}

/** Checks the token as a hub does, so that a mistake is reported in the hub's own words. */
async function check(token: string, rule: JwtRule): Promise<void> {
  try {
    await createJwtCheck([rule], keyContext)(token)
  } catch (cause) {
    throw new RejoinError(`A hub would reject this token. ${(cause as Error).message}`, {
      code: 'invalid-option',
      cause,
    })
  }
}

// Only key sets use this context, and a key set cannot sign.
const keyContext = { now: Date.now, changed: () => undefined, signal: new AbortController().signal }

function ruleFor(rules: readonly JwtRule[], { subscribe, publish }: MintOptions): JwtRule {
  const withSecret = rules.filter(({ secret }) => secret !== undefined)
  if (withSecret.length === 0) {
    const why = rules.length === 0 ? 'No tokens are believed' : 'access.jwt has public keys only, which sign nothing'
    throw new RejoinError(`${why}. Set a secret: REJOIN_ACCESS_JWT='[{"secret":"…"}]' (openssl rand -base64 48).`, {
      code: 'invalid-option',
    })
  }
  const needed = [...(subscribe.length > 0 ? ['subscribe'] : []), ...(publish.length > 0 ? ['publish'] : [])]
  const giving = (rights: readonly string[]) =>
    withSecret.find(({ gives = ['subscribe', 'publish'] }) => rights.every((right) => isIn(gives, right)))
  const found = giving(needed)
  if (found) return found
  const missing = needed.filter((right) => !giving([right])).join(' or ')
  const message = missing
    ? `No secret in access.jwt gives the right to ${missing}. Add a rule with a secret that does, or add the right to its "gives".`
    : `No secret in access.jwt gives both. Make a token for each: ${needed.join(', ')}.`
  throw invalidOption(message)
}

function isIn(list: readonly string[], word: string): boolean {
  return list.includes(word)
}

function first(names: string | readonly string[]): string {
  return typeof names === 'string' ? names : (names[0] ?? '')
}
