import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { beforeEach, describe, expect, test } from 'vitest'
import { openProgramTerminal, type Terminal } from './terminal.ts'

let hub: Hub
let url: string
let terminal: Terminal

beforeEach(async () => {
  hub = await createHub({ log: memoryLog(), retryMs: 500 })
  const server = createServer(nodeHandler(hub)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  terminal = await openProgramTerminal({ REJOIN_URL: url })
  return async () => {
    await hub.close()
    server.closeAllConnections()
    server.close()
  }
})

test('a publish prints the id of its event', async () => {
  const screen = await terminal.run('rejoin publish demo hello')
  expect(plain(screen)).toBe('<id>\nexit 0')
})

test('lines show how far they are, and then how many they were', async () => {
  const screen = await terminal.run('seq 1 3000 | rejoin publish demo --lines')
  expect(plain(screen)).toBe('3,000 events published in <time>.\nexit 0')
  expect((await hub.admin.window('demo')).newest).not.toBeNull()
})

test('a publish without data is rejected at once, and does not wait for typing', async () => {
  const screen = await terminal.run('rejoin publish demo')
  expect(screen).toContain('rejoin: There is nothing to publish.')
  expect(screen).toContain('exit 1')
})

test('the help ends without a word when nobody reads it any more', async () => {
  const screen = await terminal.run('(rejoin serve --help; echo "help $?" >&2) | head -1')
  expect(screen).toBe('Usage: rejoin serve [options]\nhelp 0\nexit 0')
})

test('the help on a full disk ends with an error', async () => {
  expect(await terminal.run('rejoin --help > /dev/full')).toContain('exit 1')
})

describe('tail', () => {
  test('shows what comes and what becomes of the connection, until Ctrl-C', async () => {
    terminal.type('rejoin tail "orders/*"; echo "exit $?"')
    await terminal.shows(/connected to/)
    await hub.publish('orders/42', { type: 'shipped', data: { parcel: 7 } })
    await terminal.shows(/parcel/)
    for (const { connection } of hub.admin.connections()) hub.admin.disconnectHere(connection, { retryMs: 500 })
    await terminal.shows(/connected again/)
    await hub.publish('orders/43', { text: 'two\nlines' })
    await terminal.shows(/ lines/)
    terminal.press('C-c')
    await terminal.shows(/exit \d+\n\$$/)
    expect(plain(terminal.screen())).toBe(
      [
        '$ rejoin tail "orders/*"; echo "exit $?"',
        'rejoin: connected to <url>, orders/*',
        '<id>  orders/42  shipped  {"parcel":7}',
        'rejoin: the hub let go (admin), trying again in <time>',
        'rejoin: connected again',
        '<id>  orders/43  message  two',
        '  lines',
        '^Cexit 130',
        '$',
      ].join('\n'),
    )
  })

  test('has colours, which NO_COLOR takes away', async () => {
    await hub.publish('demo', { type: 'said', text: 'hello' })
    const tail = 'rejoin tail demo --quiet --last 1 --count 1'
    expect(await terminal.run(tail, { colours: true })).toContain('\u001b[1msaid')
    expect(await terminal.run(`NO_COLOR=1 ${tail}`, { colours: true })).not.toContain('\u001b[')
  })

  test('ends without a word when nobody reads it any more', async () => {
    for (let n = 1; n <= 500; n += 1) await hub.publish('demo', { data: n })
    const screen = await terminal.run('(rejoin tail demo --quiet --last 500; echo "tail $?" >&2) | head -1')
    expect(plain(screen)).toBe('<id>  message  1\ntail 0\nexit 0')
  })

  test('goes on when nobody reads any more what becomes of the connection', async () => {
    terminal.type('{ rejoin tail demo --count 1 2>&1 1>&3 | head -1; } 3>&1; echo "exit $?"')
    await terminal.shows(/connected to/)
    const [before] = [...hub.admin.connections()].map(({ connection }) => connection)
    hub.admin.disconnectHere(String(before), { retryMs: 500 })
    await expect.poll(() => [...hub.admin.connections()].some(({ connection }) => connection !== before)).toBe(true)
    await hub.publish('demo', { text: 'still here' })
    await terminal.shows(/message {2}still here\nexit 0/)
  })

  test('does not let an event write on the screen', async () => {
    await hub.publish('demo', { text: '\u001b[2J\u001b[Hgone \u001b]0;title\u0007' })
    const screen = await terminal.run('rejoin tail demo --quiet --last 1 --count 1')
    expect(plain(screen)).toContain('<id>  message  \ufffd[2J\ufffd[Hgone \ufffd]0;title\ufffd\nexit 0')
  })
})

test('publish says what to start when there is no hub', async () => {
  const gone = createServer().listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const { port } = gone.address() as AddressInfo
  await new Promise((closed) => gone.close(closed))
  const screen = await terminal.run(`rejoin publish demo x --url http://127.0.0.1:${port}`)
  const advice = `rejoin: No hub answers at http://127.0.0.1:${port}. Start one with: rejoin serve`
  expect(screen).toBe(`${advice}\nexit 4`)
})

test('output in a pipe has no colours and no words but the answer', async () => {
  await terminal.run('rejoin publish demo hello | cat -v > out')
  await terminal.run('rejoin tail demo --quiet --last 1 --count 1 | cat -v >> out')
  expect(plain(await terminal.run('cat out'))).toBe('<id>\n<id>  message  hello\nexit 0')
})

/** The screen with what differs from run to run by its name. */
function plain(screen: string): string {
  return screen
    .replaceAll(url, '<url>')
    .replaceAll(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, '<id>')
    .replaceAll(/\d+(?:\.\d)? m?s\b/g, '<time>')
}
