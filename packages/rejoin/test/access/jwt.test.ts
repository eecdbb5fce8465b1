import { createHmac, generateKeyPairSync, type KeyObject, type KeyPairKeyObjectResult } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { EncryptJWT, exportJWK, exportSPKI, generateKeyPair, type JWK } from 'jose'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAccess } from '../../src/access/access.ts'
import type { JwtRule } from '../../src/access/rules.ts'
import { inAnHour, judged, noon, secret, token, verdict } from './guarded.ts'

const unknown = 'unauthorized: The token or key is not one that this hub knows. Check its key, algorithm and spelling.'
const expired = 'unauthorized: The token has expired. Get a new one.'
const alice = { subject: 'alice', subscribe: ['orders/*'], publish: [], expiresAt: inAnHour * 1000 }

// Made once, before the tests: an RSA key takes as long as chance wants.
const [rsa, otherRsa] = [1, 2].map(() => generateKeyPairSync('rsa', { modulusLength: 2048 })) as [KeyPair, KeyPair]

const byRule = (rule: JwtRule, text: string) => judged({ jwt: [rule] }, text)

test('a token gives its subject the rights it claims, until it expires', async () => {
  const rejoin = { subscribe: ['orders/*', 'news'], publish: ['chat/1'] }
  expect(await byRule({ secret }, await token({ rejoin }))).toEqual({ ...alice, ...rejoin })
})

test('a token without the claim says who it is and gives no rights', async () => {
  expect(await byRule({ secret }, await token({ rejoin: undefined }))).toEqual({ ...alice, subscribe: [] })
})

test('the claim can have the name that an issuer allows', async () => {
  const claim = 'https://example.com/rejoin'
  const text = await token({ [claim]: { publish: ['*'] } })
  expect(await byRule({ secret, claim }, text)).toEqual({ ...alice, subscribe: [], publish: ['*'] })
})

describe('a token of each algorithm is good by its own key, and by no other', () => {
  test.each(['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const)('%s', async (alg) => {
    const [own, other] = alg === 'RS256' || alg === 'PS256' ? [rsa, otherRsa] : [pairFor(alg), pairFor(alg)]
    const rule: JwtRule = { publicKey: pem(own.publicKey), algorithms: [alg] }
    expect(await byRule(rule, await token({}, own.privateKey, { alg }))).toEqual(alice)
    expect(await byRule(rule, await token({}, other.privateKey, { alg }))).toBe(unknown)
  })

  test.each([
    ['HS384', 48],
    ['HS512', 64],
  ] as const)('%s', async (alg, bytes) => {
    const long = (secret + secret).slice(0, bytes)
    expect(await byRule({ secret: long, algorithms: [alg] }, await token({}, long, { alg }))).toEqual(alice)
    expect(await byRule({ secret: long }, await token({}, long, { alg }))).toBe(unknown)
  })
})

describe('algorithms (RFC 8725 §2.1, §3.1)', () => {
  test.each(['none', 'None', 'NONE', 'nOnE', ''])(
    'a token that says its algorithm is %j is not believed',
    async (alg) => {
      const [, payload] = (await token()).split('.')
      expect(await byRule({ secret }, `${encoded({ alg })}.${payload}.`)).toMatch(/^unauthorized/)
      expect(await byRule({ secret }, `${encoded({ alg })}.${payload}.AA`)).toBe(unknown)
    },
  )

  test('a public key is never used as a shared secret, however a token asks for it', async () => {
    const { publicKey } = rsa
    const text = pem(publicKey)
    const der = publicKey.export({ type: 'spki', format: 'der' })
    const rule: JwtRule = { publicKey: text }
    for (const key of [text, text.trim(), der, JSON.stringify(publicKey.export({ format: 'jwk' }))]) {
      expect(await byRule(rule, forged({ alg: 'HS256' }, honest, key))).toBe(unknown)
    }
  })

  test('an algorithm that fits the key but is not allowed is rejected', async () => {
    const rule: JwtRule = { publicKey: pem(rsa.publicKey), algorithms: ['RS256'] }
    expect(await byRule(rule, await token({}, rsa.privateKey, { alg: 'PS256' }))).toBe(unknown)
  })

  test('a token that says its algorithm twice is judged by one of them everywhere', async () => {
    const [, payload] = (await token()).split('.')
    for (const header of ['{"alg":"HS256","alg":"none"}', '{"alg":"none","alg":"HS256"}']) {
      expect(await byRule({ secret }, `${Buffer.from(header).toString('base64url')}.${payload}.`)).toMatch(/^unauth/)
    }
  })
})

describe('signatures (§2.2, §3.2, §3.3)', () => {
  test('a changed payload, header or signature is noticed', async () => {
    const [header, payload, signature] = (await token()).split('.') as [string, string, string]
    const root = encoded({ ...honest, rejoin: { subscribe: ['*'] } })
    expect(await byRule({ secret }, `${header}.${root}.${signature}`)).toBe(unknown)
    expect(await byRule({ secret }, `${encoded({ alg: 'HS256', kid: 'x' })}.${payload}.${signature}`)).toBe(unknown)
    expect(await byRule({ secret }, `${header}.${payload}.${signature.slice(0, -4)}`)).toBe(unknown)
    expect(await byRule({ secret }, `${header}.${payload}.`)).toMatch(/^unauthorized/)
  })

  test('the signature of one token does not serve another', async () => {
    const [first, second] = [await token(), await token({ sub: 'bob' })]
    const [header, payload] = second.split('.')
    expect(await byRule({ secret }, `${header}.${payload}.${first.split('.')[2]}`)).toBe(unknown)
  })

  test('an ECDSA signature of zeros is not one', async () => {
    const { publicKey } = await generateKeyPair('ES256')
    const blank = Buffer.alloc(64).toString('base64url')
    const rule: JwtRule = { publicKey: await exportSPKI(publicKey) }
    expect(await byRule(rule, `${encoded({ alg: 'ES256' })}.${encoded(honest)}.${blank}`)).toBe(unknown)
  })

  test('a key that a token brings along is not used', async () => {
    const mine = await generateKeyPair('ES256', { extractable: true })
    const jwk = await exportJWK(mine.publicKey)
    const { publicKey } = await generateKeyPair('ES256')
    const rule: JwtRule = { publicKey: await exportSPKI(publicKey) }
    for (const extra of [
      { jwk },
      { jku: 'https://evil.example/keys' },
      { x5u: 'https://evil.example/x' },
      { x5c: ['AA'] },
    ]) {
      expect(await byRule(rule, await token({}, mine.privateKey, { alg: 'ES256', ...extra }))).toBe(unknown)
    }
  })

  test('an extension that must be understood and is not rejects the token', async () => {
    expect(await byRule({ secret }, forged({ alg: 'HS256', crit: ['exp'], exp: 1 }, honest))).toBe(unknown)
    expect(await byRule({ secret }, forged({ alg: 'HS256', crit: ['b64'], b64: false }, honest))).toBe(unknown)
  })
})

describe('weak keys are rejected at the start (§2.3, §3.5)', () => {
  const starting = (rule: JwtRule) => () => createAccess({ jwt: [rule] })
  test.each([
    ['an empty secret', { secret: '' }, '0 bytes'],
    ['a password', { secret: 'correct horse' }, '13 bytes'],
    ['one byte less than 256 bits', { secret: secret.slice(1) }, '31 bytes'],
    ['a secret of HS256 used for HS512', { secret, algorithms: ['HS512'] }, 'needs 64'],
    ['a secret that repeats itself', { secret: 'changeme'.repeat(8) }, 'repeats'],
    ['a PEM as a secret', { secret: `-----BEGIN PUBLIC KEY-----\n${secret}` }, 'publicKey'],
    ['a secret for a public algorithm', { secret, algorithms: ['RS256'] }, 'cannot be checked with RS256'],
    ['a secret for no algorithm', { secret, algorithms: [] }, 'no algorithm'],
    ['two keys', { secret, publicKey: 'x' }, 'exactly one'],
    ['no key', {}, 'exactly one'],
    ['text that is no PEM', { publicKey: secret }, 'BEGIN PUBLIC KEY'],
  ] as [string, JwtRule, string][])('%s', (_what, rule, message) => {
    expect(starting(rule)).toThrow(expect.objectContaining({ code: 'invalid-option' }))
    expect(starting(rule)).toThrow(message)
  })

  test('an RSA key of 1,024 bits, a curve that JWTs do not know, a private key', () => {
    const short = generateKeyPairSync('rsa', { modulusLength: 1024 })
    const odd = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
    expect(starting({ publicKey: pem(short.publicKey) })).toThrow('2,048')
    expect(starting({ publicKey: pem(odd.publicKey) })).toThrow('P-256')
    const secretPem = odd.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    expect(starting({ publicKey: secretPem })).toThrow('private key')
  })

  test('an algorithm that does not fit the public key', () => {
    const publicKey = pem(pairFor('EdDSA').publicKey)
    expect(starting({ publicKey, algorithms: ['ES256'] })).toThrow('Use EdDSA')
    expect(starting({ publicKey, algorithms: ['HS256'] })).toThrow('Use EdDSA')
  })

  test('no message repeats the secret', () => {
    const short = 'hunter2-hunter2'
    expect(() => createAccess({ jwt: [{ secret: short }] })).toThrow(expect.not.stringContaining(short))
  })
})

describe('claims (§2.8, §3.8, §3.9, §3.11, §3.12)', () => {
  const seconds = noon / 1000
  test.each([
    ['expired', { exp: seconds - 3600 }, expired],
    ['expired this second', { exp: seconds }, expired],
    [
      'one without exp',
      { exp: undefined },
      'unauthorized: The exp of the token is missing or not what this hub takes.',
    ],
    ['an exp that is text', { exp: '9999999999' as unknown as number }, /exp of the token/],
    ['an exp that is nothing', { exp: null as unknown as number }, /exp of the token/],
    ['not good yet', { nbf: seconds + 60 }, /nbf of the token/],
    ['an nbf that is text', { nbf: '0' as unknown as number }, /nbf of the token/],
    ['one without sub', { sub: undefined }, /sub of the token/],
    ['an empty sub', { sub: '' }, /sub of the token/],
    ['a sub of two lines', { sub: 'alice\nbob' }, /sub of the token/],
    ['a sub over 256 characters', { sub: 'a'.repeat(257) }, /sub of the token/],
    ['a sub that is a number', { sub: 7 as unknown as string }, /sub of the token/],
    ['a sub with half a character', { sub: 'a\ud800' }, /sub of the token/],
    ['the sub of an API key', { sub: 'key:billing' }, /sub of the token/],
    ['a jti that is a number', { jti: 7 as unknown as string }, /jti of the token/],
    ['for an audience, where none is expected', { aud: 'billing' }, /another audience/],
    ['rights that are a list', { rejoin: ['orders/*'] }, /claim "rejoin"/],
    ['rights that are text', { rejoin: { subscribe: 'orders/*' } }, /claim "rejoin"/],
    ['a right that is spelt wrong', { rejoin: { subscribe: ['orders/**'] } }, /claim "rejoin"/],
    ['a star in the middle', { rejoin: { publish: ['orders/*/lines'] } }, /claim "rejoin"/],
    ['a right that is no text', { rejoin: { publish: [null] } }, /claim "rejoin"/],
    ['no rights at all', { rejoin: null }, /claim "rejoin"/],
  ])('rejected: %s', async (_what, claims, reason) => {
    const result = await byRule({ secret }, forged({ alg: 'HS256' }, { ...honest, ...claims }))
    if (typeof reason === 'string') expect(result).toBe(reason)
    else expect(result).toMatch(reason)
  })

  test('an issuer whose clock is five seconds ahead is borne with', async () => {
    expect(await byRule({ secret }, await token({ nbf: seconds + 5, iat: seconds + 5 }))).toEqual(alice)
  })

  test.each([
    ['the right one', 'https://id.example', true],
    ['none', undefined, false],
    ['another', 'https://evil.example', false],
    ['one that only looks the same', 'https://іd.example', false],
    ['with a slash more', 'https://id.example/', false],
    ['in other letters', 'https://ID.example', false],
    ['a list with the right one', ['https://id.example'], false],
  ])('issuer: %s', async (_what, iss, isGood) => {
    const text = forged({ alg: 'HS256' }, { ...honest, iss })
    const result = await byRule({ secret, issuer: 'https://id.example' }, text)
    if (isGood) expect(result).toEqual(alice)
    else expect(result).toMatch(/iss of the token/)
  })

  test.each([
    ['the right one', 'rejoin', true],
    ['several with the right one', ['billing', 'rejoin'], true],
    ['none', undefined, false],
    ['another', 'billing', false],
    ['an empty list', [], false],
    ['a longer one', 'rejoin-admin', false],
    ['an object', { rejoin: true }, false],
  ])('audience: %s', async (_what, aud, isGood) => {
    const result = await byRule({ secret, audience: 'rejoin' }, forged({ alg: 'HS256' }, { ...honest, aud }))
    if (isGood) expect(result).toEqual(alice)
    else expect(result).toMatch(/aud of the token/)
  })

  test.each([
    [undefined, undefined, true],
    [undefined, 'JWT', true],
    [undefined, 'at+jwt', true],
    [undefined, 'application/at+jwt', true],
    [undefined, 'logout+jwt', false],
    [undefined, 'dpop+jwt', false],
    [undefined, 'id+jwt', false],
    [undefined, 7, false],
    ['at+jwt', 'at+jwt', true],
    ['at+jwt', 'JWT', false],
    ['at+jwt', undefined, false],
  ])('where the type has to be %s, a token of type %s is good: %s', async (wanted, typ, isGood) => {
    const result = await byRule({ secret, ...(wanted ? { typ: wanted } : {}) }, forged({ alg: 'HS256', typ }, honest))
    if (isGood) expect(result).toEqual(alice)
    else expect(result).toMatch(/^unauthorized/)
  })

  test('a claim that stands there twice counts once, the last time', async () => {
    const doubled = `{"sub":"bob","sub":"alice","exp":1,"exp":${inAnHour},"rejoin":{"subscribe":["*"]},"rejoin":{}}`
    expect(await byRule({ secret }, forged({ alg: 'HS256' }, doubled))).toEqual({ ...alice, subscribe: [] })
  })

  test('a claim that would change every object changes none', async () => {
    const text = forged({ alg: 'HS256' }, `{"sub":"alice","exp":${inAnHour},"__proto__":{"rejoin":{"publish":["*"]}}}`)
    expect(await byRule({ secret }, text)).toEqual({ ...alice, subscribe: [] })
    expect({}).not.toHaveProperty('rejoin')
  })

  test('two spellings of one name are two subjects', async () => {
    const composed = await byRule({ secret }, await token({ sub: 'Zoé' }))
    const decomposed = await byRule({ secret }, await token({ sub: 'Zoe\u0301' }))
    expect((composed as typeof alice).subject).not.toBe((decomposed as typeof alice).subject)
  })
})

describe('a text that is no signed token is rejected (§2.4, §2.5, §3.4, §3.6)', () => {
  test('an encrypted token, by the same secret', async () => {
    const jwe = await new EncryptJWT(honest)
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .encrypt(Buffer.from(secret))
    expect(await byRule({ secret }, jwe)).toBe(unknown)
  })

  test('a token within another', async () => {
    const inner = await token()
    expect(await byRule({ secret }, forged({ alg: 'HS256', cty: 'JWT' }, inner))).toBe(unknown)
  })

  test('a compressed token', async () => {
    const packed = deflateRawSync(JSON.stringify(honest))
    const text = `${encoded({ alg: 'HS256', zip: 'DEF' })}.${packed.toString('base64url')}`
    expect(await byRule({ secret }, `${text}.${hmac(text)}`)).toBe(unknown)
  })

  test('a token that is too long is not even looked at', async () => {
    const long = await token({ padding: 'x'.repeat(8192) })
    expect(await byRule({ secret }, long)).toBe('unauthorized: The token is over 8192 characters.')
  })

  test.each([
    ['no dots', 'a'.repeat(40)],
    ['dots alone', '..'],
    ['four parts', 'a.b.c.d'],
    ['JSON that is no object', `${encoded([])}.${encoded('x')}.AA`],
    ['a header that is no JSON', 'AAAA.AAAA.AAAA'],
    ['padding', `${encoded({ alg: 'HS256' })}==.${encoded({})}==.AA==`],
  ])('%s', async (_what, text) => {
    expect(await byRule({ secret }, text)).toMatch(/^unauthorized/)
  })
})

describe('one kind of token is not taken for another (§2.7, §3.12)', () => {
  test('readers and publishers can have keys of their own', async () => {
    const other = [...secret].reverse().join('')
    const rules = { jwt: [{ secret, gives: ['subscribe'] } as const, { secret: other, gives: ['publish'] } as const] }
    const rejoin = { subscribe: ['*'], publish: ['*'] }
    expect(await judged(rules, await token({ rejoin }))).toMatchObject({ subscribe: ['*'], publish: [] })
    expect(await judged(rules, await token({ rejoin }, other))).toMatchObject({ subscribe: [], publish: ['*'] })
  })

  test('each rule judges by its own issuer and audience', async () => {
    const other = [...secret].reverse().join('')
    const rules = {
      jwt: [
        { secret, issuer: 'a' },
        { secret: other, issuer: 'b' },
      ],
    }
    expect(await judged(rules, await token({ iss: 'b' }, other))).toEqual(alice)
    expect(await judged(rules, await token({ iss: 'a' }, other))).toMatch(/iss of the token/)
    expect(await judged(rules, await token({ iss: 'b' }))).toMatch(/iss of the token/)
  })

  test('a key set must say whose tokens for whom it vouches for', () => {
    const jwks = 'https://id.example/keys'
    expect(() => createAccess({ jwt: [{ jwks }] })).toThrow('"issuer" and "audience"')
    expect(() => createAccess({ jwt: [{ jwks, issuer: 'a' }] })).toThrow('"issuer" and "audience"')
  })
})

describe('key sets (§2.9, §2.10, §3.10)', () => {
  const bound = { issuer: 'https://id.example', audience: 'rejoin' }
  const claims = { iss: bound.issuer, aud: bound.audience }

  test('a key can be added, and one that is taken away no longer counts', async () => {
    const [old, young] = [await namedKey('old'), await namedKey('young')]
    const issuer = await issuerWith([old.jwk])
    let time = noon
    const access = createAccess({ jwt: [{ jwks: issuer.url, ...bound }] }, { now: () => time })
    const judge = async ({ sign }: typeof old) => verdict(access, { authorization: `Bearer ${await sign(claims)}` })

    expect(await judge(old)).toEqual(alice)
    issuer.keys = [old.jwk, young.jwk]
    expect(await judge(young)).toBe(unknown)
    time += 30_000
    expect(await judge(young)).toEqual(alice)
    expect(await judge(old)).toEqual(alice)

    issuer.keys = [young.jwk]
    time += 5 * 60_000
    expect(await judge(young)).toEqual(alice)
    expect(await judge(old)).toBe(unknown)
  })

  test('made-up key ids do not make the hub flood the issuer', async () => {
    const key = await namedKey('a')
    const issuer = await issuerWith([key.jwk])
    const access = createAccess({ jwt: [{ jwks: issuer.url, ...bound }] }, { now: () => noon })
    for (let count = 0; count < 50; count += 1) {
      const text = await token(claims, key.privateKey, { alg: 'ES256', kid: `x${count}` })
      expect(await verdict(access, { authorization: `Bearer ${text}` })).toBe(unknown)
    }
    expect(issuer.asked).toBe(1)
  })

  test.each([
    '../../../../dev/null',
    '/dev/null',
    'file:///etc/passwd',
    'https://evil.example/keys.json',
    "' OR '1'='1",
    "a'; DROP TABLE keys; --",
    '__proto__',
    'constructor',
    '$(id)',
    '\u0000',
    'a\r\nX: y',
    'x'.repeat(200),
    '',
  ])('a key id is a name and nothing else: %j', async (kid) => {
    const key = await namedKey('a')
    const issuer = await issuerWith([key.jwk])
    const text = await token(claims, key.privateKey, { alg: 'ES256', kid })
    expect(await judged({ jwt: [{ jwks: issuer.url, ...bound }] }, text)).toBe(unknown)
    expect(issuer.asked).toBe(1)
  })

  test('a key is used with its own algorithm and for signatures only', async () => {
    const key = await namedKey('a')
    const plain = { ...(await exportJWK(rsa.publicKey)), kid: 'r' }
    const { url: honestUrl } = await issuerWith([plain])
    const text = await token(claims, rsa.privateKey, { alg: 'RS256', kid: 'r' })
    expect(await judged({ jwt: [{ jwks: honestUrl, ...bound }] }, text)).toEqual(alice)
    const rejected: [JWK, string][] = [
      [{ ...plain, alg: 'RS512' }, text],
      [{ ...plain, use: 'enc' }, text],
      [{ ...key.jwk, key_ops: ['deriveBits'] }, await key.sign(claims)],
      [
        { kty: 'oct', kid: 'a', k: Buffer.from(secret).toString('base64url') },
        await token(claims, secret, { kid: 'a' }),
      ],
    ]
    for (const [jwk, presented] of rejected) {
      const { url } = await issuerWith([jwk])
      expect(await judged({ jwt: [{ jwks: url, ...bound }] }, presented)).toBe(unknown)
    }
  })

  test('an issuer that is down for less than an hour costs nobody their access, and then the error does not blame the token', async () => {
    const key = await namedKey('a')
    const issuer = await issuerWith([key.jwk])
    let time = noon
    const access = createAccess({ jwt: [{ jwks: issuer.url, ...bound }] }, { now: () => time })
    const judge = async () =>
      verdict(access, { authorization: `Bearer ${await key.sign({ ...claims, exp: inAnHour + 7200 })}` })
    const good = { ...alice, expiresAt: (inAnHour + 7200) * 1000 }
    expect(await judge()).toEqual(good)
    issuer.status = 500
    time += 59 * 60_000
    expect(await judge()).toEqual(good)
    time += 60_000
    expect(await judge()).toMatch(/^unreachable/)
    issuer.status = 200
    time += 5000
    expect(await judge()).toEqual(good)
  })

  test('an issuer that is down for an hour is asked every five seconds at most, however many tokens come', async () => {
    const key = await namedKey('a')
    const issuer = await issuerWith([key.jwk])
    let time = noon
    const access = createAccess({ jwt: [{ jwks: issuer.url, ...bound }] }, { now: () => time })
    const text = await key.sign({ ...claims, exp: inAnHour + 7200 })
    const judge = () => verdict(access, { authorization: `Bearer ${text}` })
    await judge()
    issuer.status = 500
    issuer.asked = 0
    const verdicts = new Set<string>()
    for (const end = time + 2 * 3_600_000; time < end; time += 30_000) {
      // Three at once, in one second and in the next.
      for (const stepMs of [0, 1000]) {
        time += stepMs
        const judged = await Promise.all([judge(), judge(), judge()])
        for (const grant of judged) verdicts.add(typeof grant === 'string' ? grant.split(':')[0]! : 'good')
      }
    }
    // Good for an hour, and later the issuer's fault: never the token's.
    expect([...verdicts]).toEqual(['good', 'unreachable'])
    expect(issuer.asked).toBeLessThanOrEqual((2 * 3_600_000) / 30_000)
    issuer.status = 200
    time += 5000
    expect(await judge()).toMatchObject({ subject: 'alice' })
  })

  test('another issuer’s tokens are judged while one is down', async () => {
    const jwt = [
      { jwks: 'http://127.0.0.1:1/keys', ...bound },
      { jwks: '', ...bound },
    ] as JwtRule[]
    const key = await namedKey('a')
    ;(jwt[1] as JwtRule).jwks = (await issuerWith([key.jwk])).url
    expect(await judged({ jwt }, await key.sign(claims))).toEqual(alice)
    expect(await judged({ jwt: jwt.slice(0, 1) }, await key.sign(claims))).toMatch(/^unreachable/)
  })

  test('an address that leads elsewhere, answers with something else or with too much gives no keys', async () => {
    const key = await namedKey('a')
    const target = await issuerWith([key.jwk])
    const text = await key.sign(claims)
    for (const odd of [
      { status: 302, location: target.url },
      { status: 200, body: '<html>' },
      { status: 200, body: '{"keys":{}}' },
      { status: 200, body: JSON.stringify({ keys: [key.jwk], padding: 'x'.repeat(300_000) }) },
    ]) {
      const issuer = await issuerWith([])
      Object.assign(issuer, odd)
      expect(await judged({ jwt: [{ jwks: issuer.url, ...bound }] }, text)).toMatch(/^unreachable/)
    }
    expect(target.asked).toBe(0)
  })

  test('a token that names no key is good by any key of the set, and by a new one after a while', async () => {
    const [old, young, other] = [await unnamedKey(), await unnamedKey(), await unnamedKey()]
    const issuer = await issuerWith([old.jwk, young.jwk])
    let time = noon
    const access = createAccess({ jwt: [{ jwks: issuer.url, ...bound }] }, { now: () => time })
    const judge = async ({ sign }: typeof old, more = {}) =>
      verdict(access, { authorization: `Bearer ${await sign({ ...claims, ...more })}` })

    expect([await judge(old), await judge(young), await judge(other)]).toEqual([alice, alice, unknown])
    expect(await judge(young, { exp: noon / 1000 - 60 })).toContain('expired')
    issuer.keys = [other.jwk]
    expect(await judge(other)).toBe(unknown)
    time += 30_000
    expect(await judge(other)).toEqual(alice)
    expect([await judge(old), await judge(young)]).toEqual([unknown, unknown])
    issuer.keys = [old.jwk]
    time += 30_000
    expect(await judge(old)).toEqual(alice)
  })

  test('tokens that nobody signed do not make the hub flood the issuer, whether they name a key or not', async () => {
    const [key, foreign] = [await unnamedKey(), await unnamedKey()]
    const issuer = await issuerWith([key.jwk])
    const access = createAccess({ jwt: [{ jwks: issuer.url, ...bound }] }, { now: () => noon })
    for (let count = 0; count < 20; count += 1) {
      const authorization = `Bearer ${await foreign.sign({ ...claims, jti: `${count}` })}`
      expect(await verdict(access, { authorization })).toBe(unknown)
    }
    expect(issuer.asked).toBe(1)
  })

  test('a file of keys is read again, and a token found good before is judged anew', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rejoin-keys-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const jwks = join(folder, 'keys.json')
    const [old, young] = [await namedKey('old'), await namedKey('young')]
    await writeFile(jwks, JSON.stringify({ keys: [old.jwk] }))
    let time = noon
    const access = createAccess({ jwt: [{ jwks, ...bound }] }, { now: () => time })
    const [oldToken, youngToken] = [await old.sign(claims), await young.sign(claims)]
    const judge = (text: string) => verdict(access, { authorization: `Bearer ${text}` })
    expect(await judge(oldToken)).toEqual(alice)
    await writeFile(jwks, JSON.stringify({ keys: [young.jwk] }))
    time += 5000
    expect(await judge(youngToken)).toEqual(alice)
    expect(await judge(oldToken)).toBe(unknown)
  })

  test('a password in the address is rejected at the start, and not repeated', () => {
    const rejected = () => createAccess({ jwt: [{ jwks: 'https://hub:horse@id.example/keys', ...bound }] })
    expect(rejected).toThrow(
      expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining('password') }),
    )
    expect(rejected).not.toThrow(/horse/)
  })

  test.each(['http://id.example/keys', '/nowhere/keys.json', 'https://'])('%s is rejected at the start', (jwks) => {
    expect(() => createAccess({ jwt: [{ jwks, ...bound }] })).toThrow(
      expect.objectContaining({ code: 'invalid-option' }),
    )
  })
})

const honest = { sub: 'alice', exp: inAnHour, rejoin: { subscribe: ['orders/*'] } }

type KeyPair = KeyPairKeyObjectResult

function pairFor(alg: 'ES256' | 'ES384' | 'ES512' | 'EdDSA'): KeyPair {
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519')
  return generateKeyPairSync('ec', { namedCurve: { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }[alg] })
}

function pem(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }) as string
}

function encoded(value: unknown): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
}

/** A token as nobody's library would make it. */
function forged(header: object, payload: unknown, key: string | Buffer = secret): string {
  const text = `${encoded(header)}.${encoded(payload)}`
  return `${text}.${hmac(text, key)}`
}

function hmac(text: string, key: string | Buffer = secret): string {
  return createHmac('sha256', key).update(text).digest('base64url')
}

async function unnamedKey() {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk: JWK = { ...(await exportJWK(publicKey)), alg: 'ES256', use: 'sig' }
  return { jwk, sign: (claims: object) => token({ ...claims }, privateKey, { alg: 'ES256' }) }
}

async function namedKey(kid: string) {
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk: JWK = { ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }
  return { jwk, privateKey, sign: (claims: object) => token({ ...claims }, privateKey, { alg: 'ES256', kid }) }
}

/** An issuer's web server, whose answers can be changed. */
async function issuerWith(keys: JWK[]) {
  const issuer = { url: '', keys, asked: 0, status: 200, location: '', body: '' }
  const server = createServer((_request, response) => {
    issuer.asked += 1
    response.writeHead(issuer.status, issuer.location ? { Location: issuer.location } : {})
    response.end(issuer.body || JSON.stringify({ keys: issuer.keys }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
  return issuer
}
