import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connect, type EventStream } from '@rejoin/client'
import type { Hub } from '@rejoin/hub'
import type { DnsRecord, Listener } from '@rejoin/mdns'
import { transform } from 'esbuild'
import { EventSource } from 'eventsource'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startCommand } from '../support/command.ts'
import { root } from '../support/paths.ts'
import { readText } from '../support/repository.ts'
import { guideBlocks, guideCode } from './guide-blocks.ts'
import { runCode } from './guide-code.ts'
import { load, project } from './guide-project.ts'
import { createHub, memoryLog, nextReader, nodeHandler, serveSite } from './guide-site.ts'
import { guidesCompile } from './guides-compile.ts'

const { createMdns } = await load<typeof import('@rejoin/mdns')>('@rejoin/mdns')
const { serve } = await load<typeof import('rejoin')>('rejoin')

const run = promisify(execFile)

afterAll(() => project.remove())
guidesCompile()

const blocks = guideCode()
const taken = new Set<string>()

/** The one block of a page that contains a text. */
function blockOf(page: string, text: string): string {
  const [block, ...more] = blocks.filter(({ page: of, code }) => of === page && code.includes(text))
  if (!block || more.length > 0) throw new Error(`${more.length + (block ? 1 : 0)} blocks of ${page} have ${text}`)
  taken.add(block.code)
  return block.code
}

/** Notes that a test runs the blocks of a page that contain a text. */
function takeAll(page: string, text: string): void {
  for (const { page: of, code } of blocks) if (of === page && code.includes(text)) taken.add(code)
}

/** A block that connects and keeps no name for the stream, so that a test gets it. */
function connectingOf(page: string, text: string): string {
  return blockOf(page, text).replace(/^connect\(/m, 'const made = connect(')
}

/** Blocks that other tests run, where there is what they need. */
const elsewhere: [page: string, text: string, test: string][] = [
  ['adapters.md', '// deno.ts', 'test/services/runtimes/runtimes.test.ts'],
  ['adapters.md', '// hub.ts', 'test/services/examples/next-guide.test.ts'],
  ['adapters.md', '// app/events/', 'test/services/examples/next-guide.test.ts'],
  ['adapters.md', '// app/publish/', 'test/services/examples/next-guide.test.ts'],
  ['proxies.md', 'endWithTheHub', 'test/services/proxies/vite.test.ts'],
  ['svelte-and-solid.md', 'solid-js', 'test/package/examples.test.ts'],
  ['access.md', "{ credentials: 'include' }", 'test/browser/client-auth.test.ts'],
  ['adapters.md', 'Bun.serve', 'test/services/runtimes/runtimes.test.ts'],
  ['adapters.md', 't.procedure', 'packages/hub/test/http/adapters/other-frameworks.test.ts'],
  ['adapters.md', '@Sse', 'packages/hub/test/http/adapters/other-frameworks.test.ts'],
  ['client.md', "persist: 'session'", 'test/browser/client-persistence.test.ts'],
  ['client.md', 'shareAcrossTabs', 'test/browser/tabs.test.ts'],
  ['redis.md', 'redisLog(', 'test/services/redis/guide.test.ts'],
  ['testing-your-app.md', 'chaosOf(', 'test/browser/chaos.test.ts'],
]

test.each(elsewhere)('%s: the block with %s is run by %s', (page, text, file) => {
  blockOf(page, text)
  expect(existsSync(join(root, file))).toBe(true)
})

test.each([
  ['// hub.ts', 'hub.js'],
  ['// app/events/', 'app/events/[...channel]/route.js'],
])('adapters.md: the block with %s is %s of examples/next, with types', async (text, file) => {
  const plain = async (code: string, loader: 'ts' | 'js') =>
    (await transform(code, { loader, legalComments: 'none' })).code.replaceAll(".js'", "'").replaceAll('.js"', '"')
  const block = blockOf('adapters.md', text)
  expect(await plain(block, 'ts')).toBe(await plain(readText(`examples/next/${file}`), 'js'))
})

test.each(blocks)('$page: the names that it imports of the packages are there: $code', async ({ code }) => {
  for (const [, names = '', name = ''] of code.matchAll(/^import \{ ([^}]+) \} from '(@?rejoin\b[^']*)'$/gm)) {
    const values = names.split(', ').filter((each) => !each.startsWith('type '))
    expect(Object.keys(await import(/* @vite-ignore */ name))).toEqual(expect.arrayContaining(values))
  }
})

describe('access.md', () => {
  test('a token of your application lets its user read, by the client and by an EventSource with tickets', async () => {
    const secret = 'kY7ryw1QsbCOpzUe3vT9aLxgF0mDJnh4'
    const { hub, url, close } = await serve({ port: 0, access: { jwt: [{ secret }] } })
    onTestFinished(() => close({ withinMs: 0 }))
    vi.stubEnv('SECRET', secret)
    const { token } = await runCode(blockOf('access.md', 'SignJWT'), { user: { id: '7' } })
    vi.unstubAllEnvs()
    const freshToken = async () => token

    const reading = nextReader(hub)
    const { made } = await runCode(connectingOf('access.md', '/users/7/inbox'), { freshToken }, url)
    const stream = opened(made)
    await reading
    const inbox = nextEvent(stream)
    await hub.publish('users/7/inbox', { data: 'for 7' })
    expect(await inbox).toMatchObject({ data: 'for 7' })

    const sources: EventSource[] = []
    class Source extends EventSource {
      constructor(address: string) {
        super(address)
        sources.push(this)
      }
    }
    const show = vi.fn()
    const following = nextReader(hub)
    const { follow } = await runCode(blockOf('access.md', 'follow()'), { EventSource: Source, freshToken, show }, url)
    await follow()
    await following
    await hub.publish('news', { text: 'good' })
    await vi.waitFor(() => expect(show).toHaveBeenCalledWith('good'), 20_000)
    for (const source of sources) source.close()
  })
})

test('load-then-follow.md: what is published while the state loads arrives, and the page shows it', async () => {
  const code = blockOf('load-then-follow.md', 'hub.cursor(').replace('app.listen(3000)', 'const server = app.listen(0)')
  const publishing = { during: async () => undefined as unknown }
  const loadOrder = async () => {
    await publishing.during()
    return { status: 'paid' }
  }
  const { hub, server } = await runCode(code, { loadOrder })
  publishing.during = () => hub.publish('orders/42', { type: 'shipped', data: { at: 1 } })
  const url = await addressOf(server, hub)
  const show = vi.fn()
  const page = blockOf('load-then-follow.md', '{ from: cursor }')
  const { stream } = await runCode(page, { fetch: (path: string) => fetch(url + path), show }, url)
  opened(stream)
  await vi.waitFor(() => expect(show).toHaveBeenLastCalledWith({ status: 'paid', at: 1 }), 20_000)
  expect(show.mock.calls).toEqual([[{ status: 'paid' }], [{ status: 'paid', at: 1 }]])
})

describe('adapters.md', () => {
  test('the server of Express is read and published to', async () => {
    const code = blockOf('adapters.md', "app.get('/events/*channel'").replace(
      'app.listen(3000)',
      'const server = app.listen(0)',
    )
    const { hub, server } = await runCode(code, {})
    const stream = await reader(hub, `${await addressOf(server, hub)}/events/orders/42`)
    const shipped = nextEvent(stream)
    await fetch(`${await addressOf(server, hub)}/orders/42/ship`, { method: 'POST' })
    expect(await shipped).toMatchObject({ type: 'shipped' })
  })

  test('the parts for operators stand beside the stream', async () => {
    const requireAdmin = (_request: unknown, _response: unknown, next: () => void) => next()
    const write = vi.spyOn(console, 'log').mockImplementation(() => undefined)
    onTestFinished(() => write.mockRestore())
    const { app, hub } = await runCode(blockOf('adapters.md', '@rejoin/hub/operations'), { requireAdmin })
    const { url } = await serveSite(hub, app)
    await hub.publish('orders/42', { data: 1 })
    expect(await (await fetch(`${url}/debug/sse-state?channel=orders/42`)).json()).toMatchObject({ length: 1 })
    expect(await (await fetch(`${url}/maintenance/on`, { method: 'POST' })).json()).toEqual({ on: true })
    expect(await (await fetch(`${url}/events/orders/42`)).text()).toContain('maintenance')
    expect(write.mock.calls.map(([line]) => JSON.parse(line).event)).toEqual(['sse_reject'])
  })

  test('a route of your own chooses the channels', async () => {
    const { app, hub } = await runCode(blockOf('adapters.md', '/me/events'), {})
    const { url } = await serveSite(hub, app)
    const stream = await reader(hub, `${url}/me/events?user=ada`)
    const received = nextEvent(stream)
    await hub.publish('users/ada', { data: 'hello' })
    expect(await received).toMatchObject({ data: 'hello' })
  })
})

test('history.md: a late reader gets all of a declared channel, also while it goes on', async () => {
  const { hub } = await runCode(blockOf('history.md', 'fromStart'), {})
  const { url } = await serveSite(hub)
  await hub.publish('answers/17', { data: 'one' })
  const told: unknown[] = []
  const given = { show: (text: string) => told.push(text), append: (data: unknown) => told.push(data) }
  const { stream } = await runCode(blockOf('history.md', 'onSync'), given, url)
  onTestFinished(() => stream.close())
  await hub.publish('answers/17', { data: 'two' })
  await vi.waitFor(() => expect(told).toEqual(['one', 'two']), 20_000)
})

test('history.md: a program reads the history of a pattern', async () => {
  const read: string[] = []
  const code = blockOf('history.md', 'hub.stream').replace(
    'for await',
    "await hub.publish('orders/1', { data: 1 })\nfor await",
  )
  const stopped = new Error('That is enough.')
  const console = {
    log(_id: string, type: string) {
      read.push(type)
      if (type === 'message') throw stopped
    },
  }
  await expect(runCode(code, { console })).rejects.toThrow(stopped)
  expect(read).toEqual(['hello', 'message'])
})

test('backup.md: a log is backed up under its hub, and restored', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rejoin-guide-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const code = blockOf('backup.md', 'backup?.(').replaceAll(/'(?:\.|\/backup)\//g, `'${folder}/`)
  const { hub } = await runCode(code, { console: { log: vi.fn() } })
  await hub.close()
  expect((await readdir(join(folder, 'restored'))).length).toBeGreaterThan(0)
})

describe('channels.md', () => {
  test('a channel that has ended is read to its end', async () => {
    const { hub } = await runCode(blockOf('channels.md', 'hub.end('), { id: 17, token: 'one' })
    const { url } = await serveSite(hub)
    const response = await fetch(`${url}/events/answers/17?lastEventId=earliest`)
    expect(await response.text()).toMatch(/data: one\n[\s\S]*"reason":"finished"/)
  })

  test('of values with keys the newest is retained, and a key that was forgotten is not', async () => {
    const { hub } = await runCode(blockOf('channels.md', "retain: ['prices/*']"), {})
    const { url } = await serveSite(hub)
    const stream = opened(connect(`${url}/events/prices/fx?lastEventId=lost`))
    const { retained } = await new Promise<{ retained: { data: unknown }[] }>(
      (resolve) => void stream.onSync(resolve as never),
    )
    expect(retained).toMatchObject([{ key: 'EUR-USD', data: 1.083 }])
  })

  test('a live event reaches the readers of the moment', async () => {
    const { hub, url } = await serveSite()
    const received = nextEvent(await reader(hub, `${url}/events/rooms/7`))
    await runCode(blockOf('channels.md', 'live: true'), { hub })
    expect(await received).toMatchObject({ type: 'typing', data: { who: 'Ada' } })
  })

  test('people in a room are shown to each other', async () => {
    const { hub } = await runCode(blockOf('channels.md', "retain: ['presence/*']"), {})
    const authorize = () => ({ subject: 'ada', subscribe: ['*'] })
    const { url } = await serveSite(hub, nodeHandler(hub, { authorize }))
    const presence = await reader(hub, `${url}/events/presence/7`)
    const here = nextEvent(presence)
    const room = await reader(hub, `${url}/events/rooms/7`)
    expect(await here).toMatchObject({ data: { here: true } })
    const gone = nextEvent(presence)
    room.close()
    expect(await gone).toMatchObject({ data: null })
  })
})

describe('client.md', () => {
  test('handlers get each event, and the badge its state', async () => {
    const { hub, url } = await serveSite()
    const [show, reloadOrder, badge] = [vi.fn(), vi.fn(), vi.fn()]
    const reading = nextReader(hub)
    const { stream } = await runCode(blockOf('client.md', 'reloadOrder()'), { show, reloadOrder, badge }, url)
    opened(stream)
    await reading
    await hub.publish('orders/42', { type: 'shipped', data: { at: 7 } })
    await vi.waitFor(() => expect(show).toHaveBeenCalledWith(7), 20_000)
    expect(badge).toHaveBeenCalledWith('connected', null)
  })

  test.each(['for await (const event of stream)', 'stream.iterate({ signal })'])(
    'a loop stores each event: %s',
    async (loop) => {
      const { hub, url } = await serveSite()
      const left = new AbortController()
      const { signal } = left
      const stored: unknown[] = []
      const store = ({ data }: { data: unknown }) => {
        stored.push(data)
        if (stored.length === 2) left.abort()
      }
      const reading = nextReader(hub)
      const stream = () => opened(connect(`${url}/events/orders/42`, { signal }))
      const done = runCode(blockOf('client.md', loop), late(stream, { store, signal }))
      await reading
      await hub.publish('orders/42', { data: 1 })
      await hub.publish('orders/42', { data: 2 })
      await done
      expect(stored).toEqual([1, 2])
    },
  )

  test('a schema keeps wrong data from the handlers', async () => {
    const { hub, url } = await serveSite()
    const log = vi.fn()
    const reading = nextReader(hub)
    const { stream } = await runCode(blockOf('client.md', 'schemas:'), { log }, url)
    opened(stream)
    const shipped = vi.fn()
    stream.on('shipped', shipped)
    await reading
    await hub.publish('orders/42', { type: 'shipped', data: { at: 'noon' } })
    await vi.waitFor(() => expect(log).toHaveBeenCalledWith('shipped', '{"at":"noon"}', expect.anything()), 20_000)
    expect(shipped).not.toHaveBeenCalled()
  })

  test('your session is asked for a token', async () => {
    const { hub, url } = await serveSite()
    const token = vi.fn(() => 'fresh')
    const reading = nextReader(hub)
    const { made } = await runCode(connectingOf('client.md', 'session.token('), {
      url: `${url}/events/a`,
      session: { token },
    })
    opened(made)
    await reading
    expect(token).toHaveBeenCalledWith({ refresh: false, signal: expect.any(AbortSignal) })
  })

  test('a signed URL arrives as it is', async () => {
    const { hub, url } = await serveSite()
    const fetch = vi.spyOn(globalThis, 'fetch')
    onTestFinished(() => fetch.mockRestore())
    const reading = nextReader(hub)
    const signedUrl = `${url}/events/a?signature=%2f~`
    const { made } = await runCode(connectingOf('client.md', 'signedUrl'), { signedUrl })
    opened(made)
    await reading
    expect(fetch).toHaveBeenCalledWith(signedUrl, expect.anything())
  })

  test('a channel that is added is loaded', async () => {
    const { hub, url } = await serveSite()
    const reload = vi.fn()
    const reading = nextReader(hub)
    const { stream, readInvoicesToo } = await runCode(blockOf('client.md', '&added='), { reload }, url)
    await reading
    await vi.waitFor(() => expect(stream.cursor).toBeTruthy(), 20_000)
    opened(readInvoicesToo())
    await vi.waitFor(() => expect(reload).toHaveBeenCalledWith(['invoices']), 20_000)
  })

  test('a question is asked by POST, and again after a cut, with the cursor', async () => {
    const asked: unknown[] = []
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const part of request.setEncoding('utf8')) body += part
      asked.push([request.method, request.headers['last-event-id'] ?? null, JSON.parse(body)])
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.write(`retry: 1\nid: ${asked.length}\ndata: "part ${asked.length}"\n\n`)
      if (asked.length === 1) response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const log = vi.fn()
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/answers`
    const { stream } = await runCode(blockOf('client.md', "method: 'POST'"), { log, url })
    opened(stream)
    await vi.waitFor(() => expect(log.mock.calls).toEqual([['part 1'], ['part 2']]), 20_000)
    const question = { prompt: 'Why is the sky blue?' }
    expect(asked).toEqual([
      ['POST', null, question],
      ['POST', '1', question],
    ])
  })

  test('a program waits for one answer', async () => {
    const { hub, url } = await serveSite()
    const reading = nextReader(hub)
    const { answerOf } = await runCode(blockOf('client.md', 'maxRetries: 10'), {})
    const answer = answerOf(`${url}/events/jobs/1`)
    await reading
    await hub.publish('jobs/1', { type: 'finished', data: { result: 42 } })
    expect(await answer).toEqual({ result: 42 })
    await hub.close()
  })
})

test('debug.md: every change of state is printed', async () => {
  const { hub, url } = await serveSite()
  const log = vi.fn()
  const reading = nextReader(hub)
  const { stream } = await runCode(blockOf('debug.md', 'onState'), { console: { log } }, url)
  await reading
  stream.close()
  expect(log).toHaveBeenCalledWith(expect.objectContaining({ state: 'closed' }))
})

describe('commands, pasted into a shell in the folder of the project', () => {
  test('deleting.md: they show the channels of a person, delete their events and the channel, and revoke the tokens', async () => {
    const { hub, paste } = await servedProgram()
    await hub.publish('users/7/orders', { data: 'secret' })
    const [deleting, removing, revoking] = shellBlocks('deleting.md')
    const deleted = await paste(deleting)
    expect(deleted).toMatch(/users\/7\/orders +1 /)
    expect(deleted).toContain('"length":0')
    await paste(removing)
    await expect(hub.publish('users/7/orders', { data: 1 })).rejects.toMatchObject({ code: 'channel-ended' })
    expect(await paste(revoking)).toContain('"revoked":"7"')
  })

  test('observe.md: the metrics are read on the admin port, and with the admin token on the public one', async () => {
    const [onPort = '', read = '', withToken = '', readWithToken = ''] = shellBlocks('observe.md')
    const { paste, stop } = await startedProgram(onPort)
    expect(await paste(read)).toContain('rejoin_connections')
    await stop()
    const other = await startedProgram(withToken)
    expect(await other.paste(readWithToken)).toContain('rejoin_connections')
    await expect(other.paste(read.replace('4748', '4747'))).rejects.toThrow('404')
  })

  test('observe.md: the admin API answers every command', async () => {
    const { paste } = await servedProgram()
    const [, , , , admin = ''] = shellBlocks('observe.md')
    // The connection that the page names is not there.
    const lines = admin.split('\n').filter((line) => !line.includes('c_8f2a91d04b'))
    expect(await paste(lines.join('\n'))).toContain('"connections"')
  })

  test('backup.md: a backup is made while the hub runs, and put back', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rejoin-guide-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const [backUp = '', restore = ''] = shellBlocks('backup.md').map((code) =>
      code.replaceAll('/backup/', `${folder}/`),
    )
    const program = await startedProgram('rejoin serve', folder)
    const published = await program.paste('curl -d one http://127.0.0.1:4747/publish/demo')
    await program.paste(backUp)
    await program.stop()
    const [moving = '', restoring = '', serving = ''] = restore.split('\n')
    await program.paste(`${moving}\n${restoring}`)
    const restored = await startedProgram(serving, folder)
    const { id } = JSON.parse(published)
    const read = await restored.paste(`curl -m 20 'http://127.0.0.1:4747/poll/demo?cursor=${id}'`)
    expect(read).toContain('epoch')
  })

  test('without-a-bundler.md: the files of the client are copied to where the page loads them from', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rejoin-guide-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await symlink(join(project.folder, 'node_modules'), join(folder, 'node_modules'))
    for (const code of shellBlocks('without-a-bundler.md')) {
      await run('sh', ['-ec', code.replaceAll(/^npm install .*$/gm, '')], { cwd: folder })
    }
    const loaded = ['rejoin.js', 'rejoin/client/index.js', 'rejoin/protocol/index.js']
    expect(loaded.filter((file) => !existsSync(join(folder, 'static', file)))).toEqual([])
  })

  test('ids.md: they show a switch of formats, make it, and list the formats', async () => {
    const { hub, paste } = await servedProgram()
    const [, migrating] = shellBlocks('ids.md')
    expect(await paste(migrating)).toMatch(/would get[\s\S]*New events get[\s\S]*v2_ uuidv7/)
    expect((await hub.publish('a', { data: 1 })).id).toMatch(/^v2_[0-9a-f-]{36}$/)
  })
})

function shellBlocks(page: string): string[] {
  return guideBlocks()
    .filter((block) => block.page === page && block.language === 'sh')
    .map(({ code }) => code)
}

/** The program with its admin API, and a shell for which it has the ports of the guides. */
async function servedProgram() {
  const { hub, url, adminUrl, close } = await serve({ port: 0, admin: { port: 0 } })
  onTestFinished(() => close({ withinMs: 0 }))
  return { hub, paste: shellFor(url, adminUrl) }
}

/** The program as a block of a guide starts it, in a folder, on free ports. */
async function startedProgram(block: string, folder = project.folder) {
  const code = block
    .replace('rejoin serve', 'exec rejoin serve --port 0')
    .replace('--admin-port 4748', '--admin-port 0')
  const program = startCommand('sh', ['-ec', `PATH="${bin}:$PATH"\n${code}`], folder)
  onTestFinished(async () => void (await program.stop()))
  const [line] = await program.prints(/^.*"server_ready".*$/m)
  const { url, admin_url: adminUrl } = JSON.parse(line)
  return { paste: shellFor(url, adminUrl, folder), stop: program.stop }
}

/** Where `npx rejoin` finds the program. `pack-and-install.test.ts` installs it for every folder, as the README says. */
const bin = join(project.folder, 'node_modules/.bin')

/** A shell in which the ports of the guides are those of a program. */
function shellFor(url: string, adminUrl: string | undefined, folder = project.folder) {
  return async (commands = '') => {
    const here = commands.replaceAll('http://127.0.0.1:4747', url).replaceAll('http://127.0.0.1:4748', String(adminUrl))
    // `-f`: an answer that says no fails the command.
    const { stdout } = await run('sh', ['-ec', here.replaceAll(/^curl /gm, 'curl -sSf ')], {
      cwd: folder,
      env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
    })
    return stdout
  }
}

test('observe.md: a client that sends reports reads', async () => {
  const { hub, url } = await serveSite()
  const reading = nextReader(hub)
  const { made } = await runCode(connectingOf('observe.md', 'reports:'), {}, url)
  opened(made)
  await reading
})

test('publishing.md: a publisher publishes, in batches too, and a repeated shipment is one event', async () => {
  const { hub, url } = await serveSite()
  const code = blockOf('publishing.md', 'createPublisher(')
  const { publisher } = await runCode(code, { currentToken: () => 'token' }, url)
  const again = blockOf('publishing.md', 'idempotencyKey:')
  for (let times = 0; times < 2; times += 1) {
    await runCode(again, { publisher, data: { parcel: 9 }, shipment: { id: 3 } })
  }
  expect(await hub.admin.window('orders/42')).toMatchObject({ events: 3 })
  expect(await hub.admin.window('stock/9')).toMatchObject({ events: 1 })
})

test('rights.md: a user reads its own channels, and nobody without a session', async () => {
  const userOf = ({ headers }: { headers: { cookie?: string } }) =>
    headers.cookie === undefined ? null : { id: headers.cookie, sessionEndsAt: Date.now() + 60_000 }
  const { hub, server } = await runCode(blockOf('rights.md', 'nodeHandler(').replace('3000', '0'), { userOf })
  const url = await addressOf(server, hub)
  const statusOf = async (path: string, cookie?: string) => {
    const response = await fetch(`${url}${path}`, { method: 'HEAD', headers: cookie === undefined ? {} : { cookie } })
    return response.status
  }
  expect(await statusOf('/events/users/ada/inbox')).toBe(401)
  expect(await statusOf('/events/users/ada/inbox', 'bob')).toBe(403)
  expect(await statusOf('/events/users/ada/inbox', 'ada')).toBe(200)
})

describe('snapshots.md', () => {
  const database = { orderByChannel: async (channel: string) => ({ channel, status: 'shipped' }) }

  test('the hub sends the state along', async () => {
    const { hub } = await runCode(blockOf('snapshots.md', 'snapshot: async'), { database })
    const { url } = await serveSite(hub)
    const showOrder = vi.fn()
    opened((await runCode(afterAGap(blockOf('snapshots.md', 'onSync(({ snapshot })')), { showOrder }, url)).stream)
    await vi.waitFor(() => expect(showOrder).toHaveBeenCalledWith({ channel: 'orders/42', status: 'shipped' }), 20_000)
  })

  test('the page loads the state from the address that the hub names', async () => {
    const state = await serveSite(undefined, (_request, response) => void response.end('{"status":"shipped"}'))
    const hub = await createHub({ log: memoryLog(), snapshotUrl: () => `${state.url}/state` })
    const { url } = await serveSite(hub)
    const showOrder = vi.fn()
    opened((await runCode(afterAGap(blockOf('snapshots.md', 'snapshotUrl })')), { showOrder }, url)).stream)
    await vi.waitFor(() => expect(showOrder).toHaveBeenCalledWith({ status: 'shipped' }), 20_000)
  })
})

describe('windows.md', () => {
  test('a window is as large as the comment says', async () => {
    const code = blockOf('windows.md', 'recommendWindow(')
    const { window, hub } = await runCode(code, {})
    expect(code).toContain(`{ maxEvents: ${window.maxEvents}, maxAgeMs: ${window.maxAgeMs} }`)
    await hub.close()
  })

  test('a window that is too small is reported in words', async () => {
    const told = new Map<string, (small: unknown) => void>()
    const warn = vi.fn()
    const hub = { on: (kind: string, listener: (small: unknown) => void) => told.set(kind, listener) }
    await runCode(blockOf('windows.md', "hub.on('window'"), { hub, console: { warn } })
    told.get('window')?.({ channel: 'a', absenceMs: 9, has: { maxEvents: 1 }, needs: { maxEvents: 2 } })
    expect(warn).toHaveBeenCalledWith('a keeps 1 events; absences of 9 ms need 2')
  })
})

describe('mdns.md', () => {
  test('a page shows the services, and after a gap exactly those that are there, and goes on', async () => {
    const { url, mdns, announce } = await servedNetwork()
    const show = vi.fn()
    const sources: EventSource[] = []
    onTestFinished(() => {
      for (const source of sources) source.close()
    })
    class Source extends EventSource {
      constructor(path: string) {
        super(url + path)
        sources.push(this)
      }
    }
    const showOnly = vi.fn()
    const hide = vi.fn()
    const page = blockOf('mdns.md', 'new EventSource')
    await runCode(page, { EventSource: Source, fetch: (path: string) => fetch(url + path), show, hide, showOnly })
    await vi.waitFor(() => expect(mdns.status().browses).toMatchObject([{ users: 1 }]), 20_000)
    announce('nas', 80)
    await vi.waitFor(
      () => expect(show).toHaveBeenCalledWith(expect.objectContaining({ name: 'nas', port: 80 })),
      20_000,
    )
    await mdns.hub.invalidate('mdns/_http._tcp')
    await vi.waitFor(() => expect(showOnly).toHaveBeenCalledWith([expect.objectContaining({ name: 'nas' })]), 20_000)
    announce('nas', 81)
    await vi.waitFor(() => expect(show).toHaveBeenLastCalledWith(expect.objectContaining({ port: 81 })), 20_000)
    announce('nas', 81, 0)
    await vi.waitFor(() => expect(hide).toHaveBeenCalledWith('nas'), 20_000)
    expect(show).toHaveBeenCalledTimes(2)
  })

  test('a program serves the services itself', async () => {
    const code = blockOf('mdns.md', 'createMdns({').replace('192.168.1.5', '127.0.0.1').replace('3000', '0')
    const { mdns, server } = await runCode(code, {})
    onTestFinished(() => mdns.close())
    const { status } = await fetch(`${await addressOf(server, mdns.hub)}/v1/mdns/status`)
    expect(status).toBe(200)
  })
})

/** A source on a network that the test plays, served. */
async function servedNetwork() {
  let network: Listener | undefined
  const mdns = await createMdns({
    network: async (listener) => {
      network = listener
      return { ask: () => undefined, close: async () => undefined }
    },
  })
  onTestFinished(() => mdns.close())
  const url = await addressOf(createServer(mdns.handler).listen(0, '127.0.0.1'), mdns.hub)
  const announce = (name: string, port: number, ttl = 120) => {
    const service = `${name}._http._tcp.local`
    const records: DnsRecord[] = [
      { type: 'PTR', name: '_http._tcp.local', ttl, flush: false, data: service },
      { type: 'SRV', name: service, ttl, flush: true, data: { target: `${name}.local`, port } },
      { type: 'TXT', name: service, ttl, flush: true, data: [] },
      { type: 'A', name: `${name}.local`, ttl, flush: true, data: '192.168.1.7' },
    ]
    network?.answered(records, '192.168.1.7')
  }
  return { mdns, url, announce }
}

describe('write-a-source.md', () => {
  test('a source says what is new, once; a late reader loads the state, and gets everything after it', async () => {
    let readings = [{ sensor: 'cellar', value: 12 }]
    const code = blockOf('write-a-source.md', 'readSensors()')
      .replace('3000', '0')
      .replace('setTimeout(1000)', 'setTimeout(10)')
    let isOver = false
    onTestFinished(() => {
      isOver = true
    })
    // After the test, the round that never ends is the last.
    const rounds = vi.fn(() => (isOver ? new Promise(() => undefined) : Promise.resolve(readings)))
    const { hub, server } = await runCode(code, { readSensors: rounds })
    const url = await addressOf(server, hub)
    const state = async () => (await fetch(`${url}/sensors`)).json()
    await vi.waitFor(async () => expect(await state()).toMatchObject({ sensors: { cellar: 12 } }), 20_000)
    const { cursor } = await state()
    readings = [...readings, { sensor: 'attic', value: 30 }]
    const stream = opened(connect(`${url}/events/sensors`, { from: cursor }))
    expect(await nextEvent(stream)).toMatchObject({ type: 'reading', data: { sensor: 'attic', value: 30 } })
    const before = rounds.mock.calls.length
    await vi.waitFor(() => expect(rounds.mock.calls.length).toBeGreaterThan(before + 1), 20_000)
    expect((await hub.admin.window('sensors')).events).toBe(2)
  })
})

test('svelte-and-solid.md: a store of Svelte shows the events', async () => {
  const { hub, url } = await serveSite()
  const reading = nextReader(hub)
  const { orders } = await runCode(blockOf('svelte-and-solid.md', 'svelte/store'), {}, url)
  const shown = vi.fn()
  onTestFinished(orders.subscribe(shown))
  await reading
  await hub.publish('orders', { data: 'tea' })
  const events = [expect.objectContaining({ data: 'tea' })]
  await vi.waitFor(() => expect(shown).toHaveBeenLastCalledWith(expect.objectContaining({ events })), 20_000)
})

test('redux.md: events are actions, and the connection is a part of the store', async () => {
  const { hub, url } = await serveSite()
  const orders = (seen: unknown[] = [], { type, payload }: { type: string; payload?: { data: unknown }[] }) =>
    type === 'orderStream/events' ? [...seen, ...(payload ?? []).map(({ data }) => data)] : seen
  const reading = nextReader(hub)
  const { store, orderStream } = await runCode(
    blockOf('redux.md', 'createReduxStream'),
    { orders, loadOrders: () => ({ type: 'load' }) },
    url,
  )
  onTestFinished(() => store.dispatch(orderStream.close()))
  await reading
  await hub.publish('orders', { type: 'placed', data: { id: '7' } })
  await vi.waitFor(() => expect(store.getState().orders).toEqual([{ id: '7' }]), 20_000)
  expect(store.getState().connection).toMatchObject({ state: 'connected' })
})

describe('types.md', () => {
  // The page is in the project: `guidesCompile` has pasted it, with types alone (1), and with schemas (2).
  test.each([
    ['1', '', ''],
    [
      '2',
      `const { lose, ship } = await import('./hub.ts')
       console.log((await ship('42')).channel)
       await lose().catch(({ code }) => console.log(code))`,
      'orders/42\ninvalid-type\n',
    ],
  ])('its programs run, and an event that no schema has is rejected (%s)', async (variant, more, prints) => {
    for (const name of ['channels', 'server', 'another-program', 'hub']) takeAll('types.md', `// ${name}.ts`)
    const code = `globalThis.id = '42'
      await import('./server.ts')
      await import('./another-program.ts')
      ${more}
      process.exit()`
    const { stdout } = await run(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', code], {
      cwd: join(project.folder, 'guides/types.md', variant),
    })
    expect(stdout).toBe(prints)
  })

  test('a page gets the events of a channel, checked with its schemas', async () => {
    const { hub, url } = await serveSite()
    const show = vi.fn()
    const reading = nextReader(hub)
    opened((await runCode(blockOf('types.md', 'EventsIn'), { show }, url)).stream)
    await reading
    await hub.publish('orders/42', { type: 'shipped', data: { at: 7 } })
    await vi.waitFor(() => expect(show).toHaveBeenCalledWith(7), 20_000)

    const { channels } = await runCode(blockOf('types.md', "import * as v from 'valibot'"), {})
    const withSchemas = blockOf('types.md', "channels['orders/:id']").replace(/^import \{ channels \}.*$/m, '')
    const checking = nextReader(hub)
    const stream = opened((await runCode(withSchemas, { channels }, url)).stream)
    const shipped = vi.fn()
    stream.on('shipped', shipped)
    await checking
    for (const at of ['noon', 9]) await hub.publish('orders/42', { type: 'shipped', data: { at } })
    await vi.waitFor(() => expect(shipped.mock.calls).toMatchObject([[{ data: { at: 9 } }]]), 20_000)
  })
})

test.each(['testing-your-app.md', 'write-a-log.md'])('%s: the tests that it shows pass', async (page) => {
  takeAll(page, '.test.ts')
  takeAll(page, '// my-log.ts')
  // The page is in the project: `guidesCompile` has pasted it.
  const vitest = join(project.folder, 'node_modules/vitest/vitest.mjs')
  await run(process.execPath, [vitest, 'run'], { cwd: join(project.folder, 'guides', page, '1') })
})

// The last test: the others note which blocks they have run.
test('every block is run, with the one that was written a minute ago', () => {
  expect(blocks.filter(({ code }) => !taken.has(code))).toEqual([])
})

/** A page that opens its stream after it was away for too long. */
function afterAGap(code: string): string {
  return code.replace("'/events/orders/42'", "'/events/orders/42?lastEventId=lost'")
}

/** Names, with a stream that is made when the code starts: a stream has to get its handlers in the turn in which it was made. */
function late(stream: () => EventStream, given: Record<string, unknown>): Record<string, unknown> {
  return Object.defineProperty({ ...given }, 'stream', { get: stream, enumerable: true })
}

/** A stream whose reader the hub knows. */
async function reader(hub: Hub, url: string): Promise<EventStream> {
  const there = nextReader(hub)
  const stream = opened(connect(url))
  await there
  return stream
}

function opened(stream: EventStream): EventStream {
  onTestFinished(() => stream.close())
  return stream
}

function nextEvent(stream: EventStream): Promise<unknown> {
  return new Promise((resolve) => {
    const off = stream.on('*', (event) => {
      off()
      resolve(event)
    })
  })
}

async function addressOf(server: Server, hub: Hub): Promise<string> {
  if (!server.listening) await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(async () => {
    await hub.close()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
