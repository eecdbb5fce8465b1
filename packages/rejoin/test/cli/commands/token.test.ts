import { createHash } from 'node:crypto'
import { SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { run } from '../../support/fake-process.ts'
import { send, serving } from '../../support/http.ts'

const secret = 'a secret of more than thirty-two bytes'
const rules = (...jwt: object[]) => ({ REJOIN_ACCESS_JWT: JSON.stringify(jwt) })
const env = rules({ secret })

describe('mint', () => {
  test('makes a token that a hub with these settings takes, for what it may do', async () => {
    const { url } = await serving({ access: { jwt: [{ secret }] } })
    const token = await minted(['--subject', 'ada', '--publish', 'orders/*', '--publish', 'news'])
    const publish = (channel: string) =>
      send(url, `/publish/${channel}`, { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: 'x' })
    expect((await publish('orders/42')).status).toBe(201)
    expect((await publish('news')).status).toBe(201)
    expect((await publish('other')).status).toBe(403)
  })

  test('says when a token may do nothing, and makes it all the same', async () => {
    const { stdout, stderr, exitCode } = await run(['token', 'mint', '--subject', 'ada'], { env })
    expect(stderr).toBe(
      'rejoin: This token may do nothing. Give it rights: --subscribe <pattern>, --publish <pattern>.\n',
    )
    expect(stdout).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(exitCode).toBe(0)
  })

  test('gives what the rule asks for', async () => {
    const own = rules({ secret, issuer: ['us', 'them'], audience: 'hub', typ: 'at+jwt', claim: 'https://us.example/r' })
    const { stdout } = await run(['token', 'mint', '--subject', 'ada', '--subscribe', '*', '--json'], { env: own })
    const { token, claims } = JSON.parse(stdout)
    expect(claims).toMatchObject({ iss: 'us', aud: 'hub', 'https://us.example/r': { subscribe: ['*'], publish: [] } })
    expect(claims.exp - claims.iat).toBe(900)
    expect((await run(['token', 'explain', token], { env: own })).exitCode).toBe(0)
  })

  test('signs with the secret that gives what is asked for', async () => {
    const own = rules(
      { secret: `${secret} for readers`, gives: ['subscribe'] },
      { secret: `${secret} for publishers`, gives: ['publish'] },
    )
    const token = await minted(['--subject', 'shop', '--publish', 'orders/*'], own)
    expect((await run(['token', 'explain', token], { env: own })).stdout).toContain('may publish   orders/*')
    const both = await run(['token', 'mint', '--subject', 'x', '--publish', 'a', '--subscribe', 'a'], { env: own })
    expect([both.exitCode, both.stderr]).toEqual([1, expect.stringContaining('Make a token for each')])
  })

  test.each([[['--publish', 'x']], [['--publish', 'x', '--subscribe', 'x']]])(
    '%j is rejected where no secret gives publish, with the right that is missing',
    async (rights) => {
      const own = rules({ secret, gives: ['subscribe'] })
      const { exitCode, stderr } = await run(['token', 'mint', '--subject', 'a', ...rights], { env: own })
      expect([exitCode, stderr]).toEqual([
        1,
        expect.stringContaining('No secret in access.jwt gives the right to publish.'),
      ])
    },
  )

  test.each([
    [['--subject', 'ada'], {}, 'No tokens are believed. Set a secret'],
    [['--subject', 'ada'], rules({ jwks: 'https://a.example', issuer: 'a', audience: 'b' }), 'public keys only'],
    [['--subject', 'ada', '--expires', 'soon'], env, '--expires is "soon". Give a time such as 30s, 15m, 2h or 7d.'],
    [['--subject', 'ada', '--publish', 'a*b'], env, 'A hub would reject this token.'],
    [['--subject', 'key:ada'], env, 'The sub of the token cannot be used'],
    [['--subject', 'ada'], rules({ secret: 'short' }), 'openssl rand'],
    [[], env, "required option '--subject <name>'"],
  ])('%j is rejected, with advice', async (flags, env, advice) => {
    const { exitCode, stdout, stderr } = await run(['token', 'mint', ...flags], { env })
    expect([exitCode, stdout, stderr]).toEqual([1, '', expect.stringContaining(advice)])
  })
})

describe('explain', () => {
  test('says what a good token may do, for how long, and what else is in it', async () => {
    const token = await minted(['--subject', 'ada', '--subscribe', 'orders/*', '--expires', '3h'])
    const { stdout, exitCode } = await run(['token', 'explain', token], { env })
    expect(exitCode).toBe(0)
    expect(stdout.replaceAll(/\d{4}-\S+Z|\d{10}/g, '…')).toBe(
      [
        'verdict       good: a hub with these settings takes it, unless it was revoked there',
        'kind          JWT, HS256',
        'subject       ada',
        'may read      orders/*',
        'may publish   nothing',
        'expires       in 3 h (…)',
        'claim sub     "ada"',
        'claim iat     …',
        'claim exp     …',
        'claim rejoin  {"subscribe":["orders/*"],"publish":[]}',
        '',
      ].join('\n'),
    )
  })

  test.each([
    ['another key', { secret: `${secret}!` }, 'It was not signed by this secret, or was changed since.'],
    [
      'another algorithm',
      { secret: secret.repeat(2), algorithms: ['HS512'] },
      'signed with "HS256", and this hub takes HS512',
    ],
    ['another issuer', { secret, issuer: 'us' }, 'The iss of the token is missing or not what this hub takes.'],
    ['no audience', { secret, audience: 'hub' }, 'The aud of the token is missing'],
  ])('says why a token is rejected: %s', async (_, rule, reason) => {
    const token = await minted(['--subject', 'ada', '--subscribe', '*'])
    const { stdout, exitCode } = await run(['token', 'explain', token], { env: rules(rule) })
    expect([exitCode, stdout]).toEqual([3, expect.stringContaining(`because       `)])
    expect(stdout).toContain(reason)
    expect(stdout).not.toContain('may read')
  })

  test('names each rule and its reason when there are several', async () => {
    const token = await minted(['--subject', 'ada', '--subscribe', '*'])
    const own = rules({ secret: `${secret}!` }, { secret, issuer: 'us' })
    const { stdout } = await run(['token', 'explain', token], { env: own })
    expect(stdout).toContain('because       access.jwt 1: It was not signed')
    expect(stdout).toContain('because       access.jwt 2: The iss')
  })

  test('says since when a token is no good any more', async () => {
    const exp = Math.floor(Date.now() / 1000) - 7200
    const token = await new SignJWT({ sub: 'ada', exp }).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(secret))
    const { stdout, exitCode } = await run(['token', 'explain', token], { env })
    expect([exitCode, stdout]).toEqual([3, expect.stringMatching(/because +The token has expired.*expires +2 h ago/s)])
  })

  test('without rules, shows what a token claims and that nobody has checked it', async () => {
    const token = await minted(['--subject', 'ada', '--subscribe', '*'])
    const { stdout, exitCode } = await run(['token', 'explain', token])
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^verdict +not checked.*claim sub +"ada"/s)])
  })

  test('knows API keys, and takes what it explains from a pipe or the environment', async () => {
    const key = 'an API key of more than thirty-two characters'
    const sha256 = createHash('sha256').update(key).digest('hex')
    const keys = { REJOIN_ACCESS_KEYS: JSON.stringify([{ name: 'shop', sha256, publish: ['orders/*'] }]) }
    const piped = await run(['token', 'explain', '--json'], { env: keys, stdin: `${key}\n` })
    const rights = { subject: 'key:shop', subscribe: [], publish: ['orders/*'] }
    expect(JSON.parse(piped.stdout)).toEqual({ kind: 'key', verdict: 'good', reasons: [], rights })
    expect((await run(['token', 'explain'], { env: { ...keys, REJOIN_TOKEN: key } })).stdout).toContain('key:shop')
  })

  test('never repeats what it cannot read', async () => {
    const { stdout, stderr, exitCode } = await run(['token', 'explain', 'my.own.password'], { env })
    expect([exitCode, stderr]).toEqual([3, ''])
    expect(stdout).toContain('It is no JWT.')
    expect(stdout).not.toContain('expires')
    expect(stdout).not.toContain('password')
  })
})

async function minted(flags: string[], settings: Record<string, string> = env): Promise<string> {
  const { stdout, stderr } = await run(['token', 'mint', ...flags], { env: settings })
  expect(stderr).toBe('')
  return stdout.trim()
}
