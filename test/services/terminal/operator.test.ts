import { type Serving, serve } from 'rejoin'
import { beforeEach, describe, expect, test } from 'vitest'
import { openProgramTerminal, type Terminal } from './terminal.ts'

let server: Serving
let terminal: Terminal

beforeEach(async () => {
  server = await serve({ port: 0, admin: { port: 0 } })
  terminal = await openProgramTerminal({
    ...{ REJOIN_URL: server.adminUrl ?? '', REJOIN_PORT: '4801', REJOIN_ADMIN_TOKEN: '' },
    REJOIN_ACCESS_JWT: '[{"secret":"a-secret-of-the-tests-of-32-characters"}]',
  })
  return () => server.close({ withinMs: 0 })
})

describe('channels', () => {
  test('are a table', async () => {
    for (const data of [1, 2]) await server.hub.publish('orders/42', { data })
    await server.hub.publish('news', { text: 'rain' })
    await server.hub.end('news')
    const table = [
      'channel       events  bytes  oldest  newest id',
      'news (ended)       1     11  <time>  <id>',
      'orders/42          2     16  <time>  <id>',
    ]
    expect(plain(await terminal.run('rejoin channels'))).toBe([...table, 'exit 0'].join('\n'))
    expect(plain(await terminal.run('rejoin channels | cat -v'))).toBe([...table, 'exit 0'].join('\n'))
  })

  test('are lines of JSON in a pipe that asks for them', async () => {
    await server.hub.publish('orders/42', { data: 1 })
    const screen = plain(await terminal.run('rejoin channels --json | cut -d , -f 1-4'))
    expect(screen).toBe('{"channel":"orders/42","events":1,"bytes":8,"oldest":"<id>"\nexit 0')
  })

  test('of an empty hub are none, which a pipe does not hear', async () => {
    expect(await terminal.run('rejoin channels')).toBe('No channel holds anything.\nexit 0')
    expect(await terminal.run('rejoin channels 2> /dev/null | wc -l')).toBe('0\nexit 0')
  })
})

describe('token', () => {
  const mint = 'rejoin token mint --subject ada --subscribe "orders/*" --expires 7d'

  test('mint prints the token and nothing else', async () => {
    expect(plain(await terminal.run(mint))).toBe('<token>\nexit 0')
    expect(plain(await terminal.run(`${mint} | cat -v`))).toBe('<token>\nexit 0')
  })

  test('mint says which flag is missing', async () => {
    const screen = await terminal.run('rejoin token mint')
    expect(screen).toBe("rejoin: required option '--subject <name>' not specified\nexit 1")
  })

  test('explain says what a token may do, and does not print it', async () => {
    expect(plain(await terminal.run(`${mint} | rejoin token explain`))).toBe(
      [
        'verdict       good: a hub with these settings takes it, unless it was revoked there',
        'kind          JWT, HS256',
        'subject       ada',
        'may read      orders/*',
        'may publish   nothing',
        'expires       in 7 d (<date>)',
        'claim sub     "ada"',
        'claim iat     <seconds>',
        'claim exp     <seconds>',
        'claim rejoin  {"subscribe":["orders/*"],"publish":[]}',
        'exit 0',
      ].join('\n'),
    )
  })

  test('explain says why one is rejected, to a person and to a script', async () => {
    const explain = `${mint} | sed s/[.]/.x/2 | rejoin token explain`
    const screen = plain(await terminal.run(explain))
    expect(screen.split('\n').slice(0, 2)).toEqual([
      'verdict       rejected',
      'because       It was not signed by this secret, or was changed since.',
    ])
    expect(screen).toMatch(/exit 3$/)
    const json = await terminal.run(`${explain} --json | grep -o '"verdict.*'`)
    expect(json.replaceAll('\n', '')).toMatch(/^"verdict":"rejected","reasons":\["It was not signed.*exit 0$/)
  })

  test('explain does not wait for typing', async () => {
    const screen = await terminal.run('rejoin token explain')
    const advice = 'rejoin: There is no token to explain. Set REJOIN_TOKEN, or send it through a pipe.'
    expect(screen).toBe(`${advice}\nexit 1`)
  })
})

describe('drain', () => {
  test('shows how many are left, and leaves the outcome', async () => {
    const readers = await Promise.all([1, 2, 3].map(() => fetch(`${server.url}/events/demo`)))
    terminal.type('rejoin drain --within 3s; echo "exit $?"')
    await terminal.shows(/exit 0\n\$$/)
    await expect.poll(() => terminal.written()).toMatch(/[123] readers? left/)
    const advice = 'The hub takes no readers until it is restarted.'
    expect(terminal.screen().split('\n').slice(1)).toEqual([`All 3 readers are gone. ${advice}`, 'exit 0', '$'])
    for (const reader of readers) expect(await reader.text()).toContain('"reason":"drain"')
  })

  test('writes one line to a pipe', async () => {
    const reader = await fetch(`${server.url}/events/demo`)
    expect(await terminal.run('rejoin drain --within 1s 2>&1 | cat -v')).toBe(
      'The one reader is gone. The hub takes no readers until it is restarted.\nexit 0',
    )
    await reader.text()
    const json = '{"draining":true,"withinMs":1000,"readers":0,"left":0}'
    expect(await terminal.run('rejoin drain --within 1s --json | cat -v')).toBe(`${json}\nexit 0`)
  })
})

describe('config', () => {
  test('shows each setting, and who said so; of secrets only that they are set', async () => {
    const screen = await terminal.run('rejoin config --log memory')
    const lines = screen.split('\n')
    expect(lines.slice(0, 2)).toEqual([
      expect.stringMatching(/^port +4801 +REJOIN_PORT$/),
      expect.stringMatching(/^host +127\.0\.0\.1 +default$/),
    ])
    expect(screen).toMatch(/^log +memory +--log$/m)
    expect(screen).toMatch(/^access\.jwt +set +REJOIN_ACCESS_JWT$/m)
    expect(screen).not.toContain('a-secret-of')
    expect(lines.every((line) => line.length < 160)).toBe(true)
    expect(lines.at(-1)).toBe('exit 0')
  })

  test('is the same in a pipe, and JSON when that is asked for', async () => {
    expect(await terminal.run('rejoin config > one; rejoin config | cat -v | cmp - one')).toBe('exit 0')
    const json = await terminal.run('rejoin config --json | head -1')
    expect(json).toBe('{"key":"port","value":4801,"origin":"REJOIN_PORT"}\nexit 0')
  })

  test('names a setting that is wrong', async () => {
    const screen = await terminal.run('rejoin config --port 80x')
    expect(screen).toMatch(/^rejoin: .*--port.*80x/)
    expect(screen).toMatch(/exit 1$/)
  })
})

/** The screen with what differs from run to run by its name. A token is longer than a line. */
function plain(screen: string): string {
  return screen
    .replace(/eyJ[\w.\n-]+(?=\nexit)/, '<token>')
    .replaceAll(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, '<id>')
    .replaceAll(/ +\d+(?:\.\d)? m?s/g, '  <time>')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<date>')
    .replaceAll(/\b\d{10}\b/g, '<seconds>')
}
