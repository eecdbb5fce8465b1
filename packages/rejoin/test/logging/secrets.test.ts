import { createHash } from 'node:crypto'
import { SignJWT } from 'jose'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { fakeProcess } from '../support/fake-process.ts'
import { open, type Sent, send, until } from '../support/http.ts'

const jwtSecret = 'Zx9vQ2mLr7TnKc4WbYh8Jd3Fg6Ps1Au5'
const adminToken = 'adm_7Hq2Vn9XcLw4ZtBkYs1Kd6Fp3Gr5Ae8J'
const apiKey = 'key_4NtRb8Wq2Zc7LmVx9Hd3Jf6Ks1Pg5YaU'
const everything = { subscribe: ['*'], publish: ['*'] }

test('no log line of a run that uses every feature holds a secret', async () => {
  const keys = [{ name: 'app', sha256: createHash('sha256').update(apiKey).digest('hex'), ...everything }]
  const { url, written, emit } = await started({
    REJOIN_ACCESS_JWT: JSON.stringify([{ secret: jwtSecret }]),
    REJOIN_ACCESS_KEYS: JSON.stringify(keys),
    REJOIN_ACCESS_COOKIE: 'session',
    REJOIN_ADMIN_TOKEN: adminToken,
    REJOIN_LOG_LEVEL: 'debug',
  })
  const good = await token({ exp: Date.now() / 1000 + 600 })
  const expired = await token({ exp: 1 })
  const forged = `${good.slice(0, -8)}AAAAAAAA`
  const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
  const ask = async (path: string, sent: Sent = {}) => {
    const { text } = await send(url, path, sent)
    return text
  }
  const act = (path: string, body: unknown) =>
    ask(path, { method: 'POST', headers: bearer(adminToken), body: JSON.stringify(body) })
  const { ticket } = JSON.parse(await ask('/ticket', { method: 'POST', headers: bearer(good) }))
  const secrets = [jwtSecret, adminToken, apiKey, good, expired, forged, ticket]

  const stream = await open(url, `/events/a?ticket=${ticket}`)
  await until(stream, 'event: hello')
  const answers = [await ask(`/events/a?ticket=${ticket}`), await ask(`/events/a?reject=status&token=${good}`)]
  for (const headers of [good, expired, forged, apiKey, adminToken, 'nonsense'].map(bearer)) {
    answers.push(
      await ask('/publish/a', { method: 'POST', headers: { ...headers, 'idempotency-key': '1' }, body: 'x' }),
    )
    answers.push(await ask('/poll/a?waitMs=0&lastEventId=nonsense', { headers }))
    answers.push(await ask('/admin/connections', { headers }), await ask('/metrics', { headers }))
  }
  const cookie = `session=${apiKey}`
  answers.push(await ask('/publish/a', { method: 'POST', headers: { cookie, origin: url }, body: 'x' }))
  answers.push(
    await ask('/publish/a', { method: 'POST', headers: { cookie, origin: 'http://evil.example' }, body: 'x' }),
  )
  const report = { event: 'sse_reconnect', attempt: 1, delay_ms: 1, timestamp: '2026-01-01T00:00:00Z' }
  for (const address of [`${url}/events/a?ticket=${ticket}`, `https://me:${apiKey}@example.com/events/a#${good}`]) {
    answers.push(await ask('/log', { method: 'POST', body: JSON.stringify({ ...report, url: address }) }))
  }
  answers.push(await act('/admin/invalidate', { channel: 'a' }), await act('/admin/revoke', { subject: 'alice' }))
  answers.push(await ask('/admin/nothing', { headers: bearer(adminToken) }), await ask(`/${good}?${adminToken}`))
  emit('SIGTERM')
  await expect.poll(() => send(url, '/healthz').then(Boolean, () => false)).toBe(false)

  const lines = written()
  for (const event of [
    'server_ready',
    'sse_connect',
    'sse_replay',
    'sse_reject',
    'sse_disconnect',
    'sse_reconnect',
    'publish',
    'admin',
  ]) {
    expect(lines).toContain(`"event":"${event}"`)
  }
  for (const each of secrets) {
    // Nor a part that gives it away. The heads of tokens are no secret, so their ends are looked for.
    expect(lines).not.toContain(each.slice(-24))
    expect(answers.join('')).not.toContain(each.slice(-24))
  }
})

function token(claims: { exp: number }): Promise<string> {
  return new SignJWT({ sub: 'alice', rejoin: everything, ...claims })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(jwtSecret))
}

/** The program as it is started from a shell, but for the process it would end. */
async function started(env: Record<string, string>) {
  const { host, output, emit } = fakeProcess({ env })
  await runProgram(['config', '--port', '0', '--log', 'memory'], host)
  const shown = output.length
  await runProgram(['serve', '--port', '0', '--log', 'memory'], host)
  onTestFinished(() => emit('SIGTERM'))
  const { url } = JSON.parse(output[shown] ?? '') as { url: string }
  return { url, emit, written: () => output.join('') }
}
