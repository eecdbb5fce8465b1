import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Check, Report } from '@rejoin/doctor'
import { describe, expect, test } from 'vitest'
import { reportLines } from '../../../src/cli/commands/doctor-lines.ts'
import { serve } from '../../../src/serve.ts'
import { run } from '../../support/fake-process.ts'
import { nobody } from '../../support/http.ts'

const good: Check = { name: 'ids', state: 'good', summary: 'ids arrive' }
const server = { kind: 'program', version: '0.1.0', proxy: 'nginx', proxyText: 'nginx/1.22.1' } as const
const stripped: Check = {
  name: 'header-cursor',
  state: 'fault',
  summary: 'Last-Event-ID does not reach the hub',
  remedy: {
    culprit: 'nginx/1.22.1, which answers here',
    cost: 'A native EventSource that reconnects loses the events between. Our client notices and uses the query.',
    changes: [
      {
        where: 'nginx, the location of /events',
        lines: ['remove: proxy_set_header Last-Event-ID …;', 'remove: proxy_pass_request_headers off;'],
      },
    ],
  },
}

describe('a report for people', () => {
  test('ends with the verdict, after the culprit and the lines to change', () => {
    expect(linesOf([stripped, good])).toEqual([
      '',
      'https://hub.example  rejoin 0.1.0, behind nginx/1.22.1',
      '',
      '  ✗ cursor in header  Last-Event-ID does not reach the hub',
      '  ✓ ids               ids arrive',
      '',
      '✗ cursor in header: Last-Event-ID does not reach the hub',
      '  A native EventSource that reconnects loses the events between. Our client notices and uses the query.',
      '  Likely cause: nginx/1.22.1, which answers here.',
      '  In nginx, the location of /events:',
      '      - proxy_set_header Last-Event-ID …;',
      '      - proxy_pass_request_headers off;',
      '',
      '1 fault found. (6.2 s)',
    ])
  })

  test('says so when all is well', () => {
    expect(linesOf([good]).at(-1)).toBe('Streams pass unharmed. (6.2 s)')
  })

  test('shows a line that is to be removed as such', () => {
    const lines = ['remove: http-request del-header Last-Event-ID']
    const remedy = { culprit: 'HAProxy', cost: 'No cursor arrives.', changes: [{ where: 'haproxy.cfg', lines }] }
    expect(linesOf([{ ...stripped, remedy }])).toContain('      - http-request del-header Last-Event-ID')
  })

  test('obeys nothing that a server has written', () => {
    const lines = linesOf([{ ...stripped, summary: 'as "\u001b[2J\nx"' }])
    expect(lines.join('\n')).not.toContain('\u001b')
    expect(lines.filter((line) => line.startsWith('x'))).toEqual([])
  })
})

describe.concurrent('rejoin doctor', () => {
  test('ends with 0 and one JSON object where all is well', async ({ expect, onTestFinished }) => {
    const { url, close } = await serve({ port: 0 })
    onTestFinished(() => close())
    const { stdout, exitCode } = await run(['doctor', url, '--json'])
    expect(exitCode).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ address: url, server: { kind: 'program' } })
    expect(stdout.trim().split('\n')).toHaveLength(1)
  })

  test('ends with 1 where there is a fault, and shows its progress in a terminal', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, close } = await serve({ port: 0 })
    onTestFinished(() => close())
    const { stdout, stderr, exitCode } = await run(['doctor', url, '--origin', 'https://app.example'], { isTTY: true })
    expect(exitCode).toBe(1)
    expect(stdout).toContain('--cors-origin https://app.example')
    expect(stderr).toContain('waiting for')
    expect(stderr).toContain('silence')
  })

  test('prints flags for an unlisted origin with which the hub starts, and lets its pages read', async ({
    expect,
    onTestFinished,
  }) => {
    const hub = await serve({ port: 0 })
    onTestFinished(() => hub.close())
    const { stdout } = await run(['doctor', hub.url, '--origin', 'https://app.example'])
    const printed = [...stdout.matchAll(/^ +\+ (--\S+) (\S+)/gm)].map(([, flag = '', value = '']) => [flag, value])
    const flags = printed.flatMap(([flag = '', value = '']) => [flag, value.replaceAll("'", '')])
    expect(flags).toContain('--cors-origin')
    const { exitCode, stdout: settings } = await run(['config', '--json', ...flags])
    expect(exitCode).toBe(0)
    const settingOf = (name: string) =>
      settings.split('\n').flatMap((line) => (line.includes(`"${name}"`) ? [JSON.parse(line).value] : []))[0]
    const access = { cors: settingOf('access.cors'), anonymous: { subscribe: settingOf('access.anonymous.subscribe') } }
    const mended = await serve({ port: 0, access })
    onTestFinished(() => mended.close())
    const answer = await fetch(`${mended.url}/poll?channel=demo&wait=0`, { headers: { origin: 'https://app.example' } })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, 'https://app.example'])
  })

  test('prints the origin alone where the hub has access rules', async ({ expect, onTestFinished }) => {
    const { url, close } = await serve({ port: 0, access: { anonymous: { subscribe: ['*'] } } })
    onTestFinished(() => close())
    const { stdout } = await run(['doctor', url, '--origin', 'https://app.example'])
    expect(stdout).toContain('+ --cors-origin https://app.example')
    expect(stdout).not.toContain('--access-anonymous')
  })

  test('ends with 4 and advice where nobody answers', async ({ expect }) => {
    const { stderr, exitCode } = await run(['doctor', await nobody()])
    expect([exitCode, stderr]).toEqual([
      4,
      expect.stringMatching(/^rejoin: No hub answers at \S+\. Start one with: rejoin serve\n$/),
    ])
  })

  test('ends with 3 and advice where a stream needs a token', async ({ expect, onTestFinished }) => {
    const server = createServer((request, response) => response.writeHead(request.url === '/live' ? 401 : 404).end())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/live`
    const without = await run(['doctor', address])
    expect([without.exitCode, without.stderr]).toEqual([3, expect.stringContaining('--token, or REJOIN_TOKEN')])
    const wrong = await run(['doctor', address, '--token', 'x'])
    expect([wrong.exitCode, wrong.stderr]).toEqual([3, expect.stringContaining('does not take this token')])
  })

  test('takes a port of this machine without a scheme, and says where TLS is expected of a server that has none', async ({
    expect,
    onTestFinished,
  }) => {
    const { url, close } = await serve({ port: 0 })
    onTestFinished(() => close())
    const { stdout } = await run(['doctor', url.replace('http://', ''), '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ address: url })
    const secure = await run(['doctor', url.replace('http:', 'https:')])
    expect([secure.exitCode, secure.stderr]).toEqual([4, expect.stringContaining(`speaks no TLS. Try ${url}`)])
  })

  test.each([
    [['ftp://hub.example'], 'is no address'],
    [['http://hub.example', '--origin', 'app'], 'Give it as browsers do'],
    [['http://hub.example', '--idle', 'long'], 'Give a time such as 30s'],
    [['http://hub.example', '--proxy', 'squid'], 'Allowed choices are'],
  ])('%j is rejected with advice', async (args, words) => {
    const { stderr, exitCode } = await run(['doctor', ...args])
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(words)])
  })
})

function linesOf(checks: readonly Check[]): string[] {
  const report: Report = { url: 'https://hub.example/', address: 'https://hub.example', server, checks, ms: 6200 }
  return reportLines(report, { colour: false })
}
