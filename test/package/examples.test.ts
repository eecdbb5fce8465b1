import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { connect } from '@rejoin/client'
import { expect, onTestFinished, test } from 'vitest'
import { startCommand } from '../support/command.ts'
import { root } from '../support/paths.ts'
import { readText, trackedFiles } from '../support/repository.ts'

const run = promisify(execFile)

async function example(name: string): Promise<string> {
  const { stdout } = await run(process.execPath, [`examples/${name}/main.js`], { cwd: root })
  return stdout
}

test('cut-and-return prints every number once, in order, across its cut', async () => {
  const printed = await example('cut-and-return')
  const numbers = [...printed.matchAll(/got (\d+)/g)].map(([, number]) => Number(number))
  expect(numbers).toEqual(Array.from({ length: 12 }, (_, index) => index + 1))
  expect(printed).toContain('cut\nbackoff\n')
})

test('publish-from-node publishes every number once, although its answers get lost', async () => {
  const printed = await example('publish-from-node')
  expect([...printed.matchAll(/got (\d+)/g)].map(([, number]) => Number(number))).toEqual([1, 2, 3, 4, 5])
  expect(printed.match(/answer lost/g)).toHaveLength(5)
})

test('llm-tokens gives the whole answer to a reader that was cut off, came late or came after its end, and stops when nobody reads', async () => {
  const printed = await example('llm-tokens')
  const whole = 'finished: You asked: does it resume? And this is what can be said about it, one word after the other.'
  expect(printed).toBe(
    `cut\nfirst   ${whole}\njoined  ${whole}\nafter   ${whole}\n` +
      'nobody reads answers/2: stopped\nleft    closed: You asked: and\n',
  )
})

test('snapshot replays a short absence, and gives the state after a long one', async () => {
  expect(await example('snapshot')).toBe(
    `reading
  event apples 1
  event pears 1
away for two changes, which the window holds
  event apples 2
  event pears 2
away for ten, which it does not
  sync-required (expired) { apples: 7, pears: 7 }
the reader has { apples: 7, pears: 7 }
`,
  )
})

test('snapshot-webhook: the hub asks a webhook for the state, and readers load it from an address', async () => {
  expect(await example('snapshot-webhook')).toBe(
    `orders/42: { channel: 'orders/42', status: 'shipped' }
prices/tea: { path: '/prices/tea', price: 7 }
`,
  )
})

test('load-then-follow misses a change without the cursor, and none with it', async () => {
  expect(await example('load-then-follow')).toBe(
    'without the cursor: paid, shipped\nwith the cursor: shipped, returned, refunded\n',
  )
})

test('mdns tells each service once, and what became of it during a cut', async () => {
  expect(await example('mdns')).toBe('nas is at 192.168.1.7:80\ncut\nnas is at 192.168.1.7:8080\nnas is gone\n')
})

test.each(['solid', 'svelte'])('%s shows every event once, in order, across its cut', async (name) => {
  const printed = await example(name)
  expect(printed).toMatch(/^backoff 1 2$/m)
  expect(printed).toMatch(/^connected 1 2 3 4 5\n$/m)
})

test.each(['express', 'express-operations', 'fastify', 'order-board'])(
  '%s names its port when another program has it',
  async (name) => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    const { port } = other.address() as AddressInfo
    const env = { ...process.env, PORT: String(port) }
    const started = run(process.execPath, [`examples/${name}/main.js`], { cwd: root, env })
    await expect(started).rejects.toThrow(`address already in use 127.0.0.1:${port}`)
  },
)

test('express serves streams beside the routes of an application, and a page to look at', async () => {
  const address = await started('express')
  expect(await (await fetch(address)).text()).toContain("new EventSource('/events/orders/42')")
  const received = firstEvent(`${address}/events/orders/42`)
  await received.connected
  const shipped = await (await fetch(`${address}/orders/42/ship`, { method: 'POST' })).json()
  expect(await received.event).toEqual({ id: shipped.id, type: 'shipped', data: { at: expect.any(Number) } })
})

test('express-operations shows the state of a channel to operators, and lets them reject readers', async () => {
  const address = await started('express-operations')
  const headers = { authorization: 'Bearer change me' }
  const act = (state: string) => fetch(`${address}/admin/maintenance/${state}`, { method: 'POST', headers })
  expect((await fetch(`${address}/publish/demo`, { method: 'POST', body: 'hello' })).status).toBe(201)
  expect((await fetch(`${address}/admin/debug/sse-state?channel=demo`)).status).toBe(404)
  const state = await fetch(`${address}/admin/debug/sse-state?channel=demo`, { headers })
  expect(await state.json()).toMatchObject({ channel: 'demo', length: 1, activeConnections: 0 })
  const report = { event: 'sse_reconnect', attempt: 1, delay_ms: 12.5 }
  expect((await fetch(`${address}/log`, { method: 'POST', body: JSON.stringify(report) })).status).toBe(204)
  expect(await (await act('on')).json()).toEqual({ on: true })
  expect(await (await fetch(`${address}/events/demo`)).text()).toContain('"reason":"maintenance"')
  expect(await (await act('off')).json()).toEqual({ on: false })
  const received = firstEvent(`${address}/events/demo`)
  await received.connected
})

test('fastify lets users read what is theirs, behind its hooks', async () => {
  const address = await started('fastify')
  const inbox = `${address}/api/events/users/ada/inbox`
  expect((await fetch(inbox)).status).toBe(401)
  expect((await fetch(`${inbox}?user=bob`)).status).toBe(403)
  expect((await fetch(`${address}/api/publish/users/ada/inbox?user=ada`, { method: 'POST', body: '1' })).status).toBe(
    403,
  )
  const received = firstEvent(`${inbox}?user=ada`)
  await received.connected
  const greeted = await (await fetch(`${address}/greet/ada?user=bob`, { method: 'POST' })).json()
  expect(await received.event).toEqual({ id: greeted.id, type: 'message', data: 'hello from bob' })
})

test('the list of examples has a line for each', () => {
  const folders = readdirSync(`${root}examples`, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const listed = [...readText('examples/README.md').matchAll(/^\| \[`(.+?)`\]/gm)].map(([, name]) => name)
  expect(listed.sort()).toEqual(folders.map(({ name }) => name).sort())
})

test('every page that says how to run an example says how to build it', () => {
  const pages = trackedFiles('*.md').filter((page) => /node examples\//.test(readText(page)))
  expect(pages).toContain('README.md')
  expect(pages.filter((page) => !readText(page).includes('npm install && npm run build'))).toEqual([])
})

/** An example that serves until it is ended, with the test. */
async function started(name: string): Promise<string> {
  const program = startCommand('env', ['PORT=0', process.execPath, `examples/${name}/main.js`], root)
  onTestFinished(async () => void (await program.stop()))
  const [address] = await program.prints(/http:\/\/127\.0\.0\.1:\d+/)
  return address
}

/** The first event of a stream, which is closed with the test. */
function firstEvent(url: string) {
  const stream = connect(url)
  onTestFinished(() => stream.close())
  const event = new Promise((resolve) => stream.on('*', resolve))
  const connected = new Promise<void>((resolve) => {
    stream.onState(({ state, stale }) => state === 'connected' && !stale && resolve())
  })
  return { event, connected }
}
