import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { send, serving } from '../support/http.ts'

const anonymous = { subscribe: ['*'], publish: ['*'] }

describe('names of the hub', () => {
  test('that are listed are answered, with any port; others are rejected, but for probes of its health', async () => {
    const { url } = await serving({ access: { anonymous, hosts: ['hub.example', '*.live.example', '[::1]'] } })
    const status = async (host: string, path = '/poll/a') => (await send(url, path, { headers: { host } })).status
    for (const host of ['hub.example', 'HUB.example:8443', 'a.b.live.example', '[::1]:80']) {
      expect([host, await status(host)]).toEqual([host, 200])
    }
    for (const host of ['evil.example', 'hub.example.evil.example', '.live.example', 'live.example', '127.0.0.1']) {
      expect([host, await status(host)]).toEqual([host, 403])
    }
    expect([await status('10.0.0.7', '/healthz'), await status('10.0.0.7', '/readyz')]).toEqual([200, 200])
    const published = { method: 'POST', body: 'x', headers: { host: 'evil.example' } }
    expect((await send(url, '/publish/a', published)).text).toContain('access.hosts')
  })

  test.each(['https://hub.example', 'hub.example:443', 'Hub.example', '', '*'])(
    'that are none are told at the start: %j',
    async (host) => {
      await expect(serving({ access: { anonymous, hosts: [host] } })).rejects.toThrow('is no name of a host')
    },
  )
})

test.each([
  ['with access rules', { access: { anonymous } }],
  ['without', {}],
])('a request with two hosts is rejected, %s', async (_what, options) => {
  const { url } = await serving(options)
  const port = Number(new URL(url).port)
  const answer = await new Promise<string>((resolve, reject) => {
    let text = ''
    const socket = connect(port, '127.0.0.1')
    socket.write('GET /poll/a HTTP/1.1\r\nHost: 127.0.0.1\r\nhOST: evil.example\r\n\r\n')
    socket.setEncoding('latin1').on('data', (part) => {
      text += part
    })
    socket.on('close', () => resolve(text)).on('error', reject)
  })
  expect(answer).toMatch(/^HTTP\/1\.1 400/)
})
