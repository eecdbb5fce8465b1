import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { run } from '../../support/fake-process.ts'

// A title for the window, a colour, the same as one character, and a text that reads backwards.
const obeyed = '\u001b]0;mine\u0007\u001b[31m\u009b31m\u202e'
const isObeyed = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/

test.each([
  [['publish', 'demo', 'x'], { id: `1${obeyed}`, channel: 'demo' }],
  [['publish', 'demo', 'x', '--json'], { id: `1${obeyed}`, channel: 'demo' }],
  [
    ['channels'],
    {
      channels: [{ channel: obeyed, events: 1, bytes: 1, oldest: null, newest: obeyed, oldestAt: null, ended: false }],
      next: null,
    },
  ],
])('control characters in the answer of a foreign hub to %j are shown and not obeyed', async (command, answer) => {
  const url = await hubThat((response) => json(response, 200, answer))
  const { stdout, exitCode } = await run([...command, '--url', url])
  expect(exitCode).toBe(0)
  expect(stdout).not.toBe('')
  expect(stdout).not.toMatch(isObeyed)
})

test.each([
  [['channels'], { channels: [{ channel: 'demo', events: obeyed, bytes: obeyed, newest: '1' }], next: null }],
  [['drain', '--no-wait'], { total: obeyed }],
])(
  'text where a number belongs, in the answer to %j, is not taken for a hub, and not obeyed',
  async (command, answer) => {
    const url = await hubThat((response) => json(response, 200, answer))
    const { stdout, stderr, exitCode } = await run([...command, '--url', url])
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain('is no hub')
    expect(stderr).not.toMatch(isObeyed)
  },
)

test.each([['publish', 'demo', 'x'], ['channels'], ['drain']])('%s shows a rejection as text', async (...command) => {
  const url = await hubThat((response) =>
    json(response, 400, { error: { code: 'invalid-data', message: `No ${obeyed}` } }),
  )
  const { stderr, exitCode } = await run([...command, '--url', url])
  expect(exitCode).toBe(2)
  expect(stderr).toContain('rejoin: No \ufffd]0;mine')
  expect(stderr).not.toMatch(isObeyed)
})

test('control characters in ids and gaps that a foreign hub sends to tail are shown and not obeyed', async () => {
  const gap = { reason: 'expired', channels: ['demo'], requested: null, oldest: null, latest: `1${obeyed}` }
  const url = await hubThat((response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(
      'id: 1\nevent: hello\ndata: {"resumed":true,"requested":"1","heartbeatMs":25000,"connection":"c_1"}\n\n',
    )
    response.write(`event: sync-required\ndata: ${JSON.stringify(gap)}\n\nid: 2${obeyed}\ndata: x\n\n`)
  })
  const { stdout, stderr } = await run(['tail', 'demo', '--since', '1', '--count', '1', '--url', url])
  expect(stdout).toContain('2\ufffd]0;mine')
  expect(stderr).toContain('are gone (expired)')
  expect(stdout + stderr).not.toMatch(isObeyed)
})

test.each(['channels', 'drain'])('%s says that no hub answers where another server does', async (command) => {
  const url = await hubThat((response) => response.end('<html>'))
  const { stderr, exitCode } = await run([command, '--url', url])
  expect([exitCode, stderr]).toEqual([2, `rejoin: What answers at ${url} is no hub. Check the address.\n`])
})

test.each(['channels', 'drain'])('%s says that no hub answers where the page does not exist', async (command) => {
  const url = await hubThat((response) => response.writeHead(404).end('<html>'))
  const { stderr, exitCode } = await run([command, '--url', url])
  expect([exitCode, stderr]).toEqual([2, `rejoin: What answers at ${url} is no hub. Check the address.\n`])
})

async function hubThat(answers: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    answers(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}
