import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { program } from '../../support/paths.ts'
import { startProgram } from '../../support/program.ts'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'

const password = 'Zx9vQ2mLr7TnKc4WbYh8'

test('two programs on one Redis are one hub: what is published on one is read, and resumed, on the other', async () => {
  const redis = await openRedis()
  const [one, other] = await Promise.all([serveOn(redis), serveOn(redis)])
  const live = await read(other.url)
  const first = await publish(one.url, 'first')
  expect(first).toMatchObject({ status: 201, durability: 'disk' })
  await live.got('data: first')
  live.close()

  await publish(one.url, 'second')
  const third = await publish(other.url, 'third')
  for (const { url } of [one, other]) {
    const back = await read(url, first.id)
    await back.got('data: third')
    expect(back.events()).toEqual(['second', 'third'])
    expect(back.text()).toContain(`id: ${third.id}\n`)
    back.close()
  }
  const lines = [...one.lines, ...other.lines].join('\n')
  expect(lines).toContain(`"address":"redis://127.0.0.1:${redis.port}"`)
  expect(lines).not.toContain(password)
})

test('a program that is stopped and started again every day leaves no branch in Redis, and one that is killed leaves one (§2.3)', async () => {
  const redis = await openRedis()
  const branches = async () => {
    const client = new Redis({ port: redis.port, password, lazyConnect: true })
    const count = await client.llen('{rejoin}:branches')
    client.disconnect()
    return count
  }
  let last: string | undefined
  for (const [end, count] of [
    ['stop', 1],
    ['stop', 1],
    ['kill', 1],
    ['kill', 2],
  ] as const) {
    const { url, server } = await serveOn(redis)
    const { id } = await publish(url, 'today')
    const reader = await read(url, last ?? id)
    if (last) await reader.got(`id: ${id}\n`)
    expect(reader.text()).not.toContain('sync-required')
    reader.close()
    last = id
    await server[end]()
    // Redis still counts the connections of the program for a moment.
    await expect.poll(() => hubsOn(redis)).toBe(false)
    expect(await branches()).toBe(count)
  }
})

test('the dashboard of one program shows both, with the readers of each', async () => {
  const redis = await openRedis()
  const env = { REJOIN_ADMIN_TOKEN: 'an-admin-token-of-the-tests' }
  const [one, other] = await Promise.all([serveOn(redis, env), serveOn(redis, env)])
  await read(other.url)
  const headers = { authorization: `Bearer ${env.REJOIN_ADMIN_TOKEN}` }
  const { body } = await fetch(`${one.url}/admin/live`, { headers })
  let text = ''
  const counts = (): number[] => {
    const [, nodes = '[]'] = [...text.matchAll(/"nodes":(\[.*?\])/g)].at(-1) ?? []
    return (JSON.parse(nodes) as { connections: number }[]).map(({ connections }) => connections).sort()
  }
  const decoder = new TextDecoder()
  for await (const part of body as ReadableStream<Uint8Array>) {
    text += decoder.decode(part, { stream: true })
    if (String(counts()) === '0,1') break
  }
  expect(counts()).toEqual([0, 1])
})

test('rights that are revoked on one hub are gone on the other, and on a hub that starts later; the answer says so', async () => {
  const redis = await openRedis()
  const key = 'rk_2v8XqLw9ZtB4nHc7JmYs1Kd6Fp3Gr5Ae'
  const sha256 = createHash('sha256').update(key).digest('hex')
  const rights = { name: 'app', sha256, subscribe: ['*'], publish: ['*'] }
  const env = { REJOIN_ADMIN_TOKEN: 'an-admin-token-of-the-tests', REJOIN_ACCESS_KEYS: JSON.stringify([rights]) }
  const [one, other] = await Promise.all([serveOn(redis, env), serveOn(redis, env)])
  const headers = { authorization: `Bearer ${key}` }
  const publishOn = async (url: string) =>
    (await fetch(`${url}/publish/orders`, { method: 'POST', body: 'x', headers })).status
  expect([await publishOn(one.url), await publishOn(other.url)]).toEqual([201, 201])
  const stream = await fetch(`${other.url}/events/orders`, { headers })
  const revoked = await fetch(`${one.url}/admin/revoke`, {
    method: 'POST',
    headers: { authorization: `Bearer ${env.REJOIN_ADMIN_TOKEN}` },
    body: JSON.stringify({ subject: 'key:app' }),
  })
  expect(await revoked.json()).toEqual({ revoked: 'key:app', nodes: 2, confirmed: 2 })
  expect(await stream.text()).toContain('"reason":"token-expired"')
  const late = await serveOn(redis, env)
  for (const { url } of [one, other, late]) expect(await publishOn(url)).toBe(401)
})

test('a hub that goes on without Redis tells everybody to reload when it is back, before it publishes to it again', async () => {
  const redis = await openRedis()
  const local1s = { REJOIN_WHEN_DOWN: 'local', REJOIN_MAX_TAIL_SILENCE_MS: '1000' }
  const [one, other] = await Promise.all([serveOn(redis, local1s), serveOn(redis)])
  const [here, there] = [await read(one.url), await read(other.url)]
  await publish(one.url, 'before')
  await Promise.all([here.got('data: before'), there.got('data: before')])

  await redis.kill()
  const local = await publish(one.url, 'local')
  expect(local).toMatchObject({ status: 202, durability: 'none' })
  await here.got('data: local')
  expect(await publish(other.url, 'rejected')).toMatchObject({ status: 503 })
  await one.printed('log_silent')
  const newcomer = await read(one.url)
  expect(await publish(one.url, 'still local')).toMatchObject({ status: 202 })
  await Promise.all([here.got('data: still local'), newcomer.got('data: still local')])

  await redis.start()
  await one.printed('log_healed')
  await Promise.all([here, there, newcomer].map((reader) => reader.got('event: sync-required')))
  const after = await publish(one.url, 'after')
  expect(after.status).toBe(201)
  // A busy hub may tell a reader of the new branch first, and of the invalidation later. Who is told later is told to load what has
  // come by then, and does not get it again.
  await Promise.all([here, there, newcomer].map((reader) => reader.got(after.id)))
  await publish(one.url, 'last')
  await Promise.all([here, there, newcomer].map((reader) => reader.got('data: last')))
  for (const [reader, before] of [
    [here, 'before,local,still local'],
    [there, 'before'],
    [newcomer, 'still local'],
  ] as const) {
    const events = reader.events()
    expect(events.join()).toMatch(new RegExp(`^${before}(,sync-required)+(,after)?,last$`))
    expect(events.includes('after') || reader.text().includes(`"latest":"${after.id}"`)).toBe(true)
  }
  const lines = one.lines.map((line) => JSON.parse(line))
  const audit = lines.filter(({ event }) => event === 'publish_local')
  expect(audit).toMatchObject([{ channel: 'orders', id: local.id }, { channel: 'orders' }])
  // On a busy machine Redis can be silent for a second once more, and heal once more, with nothing to tell.
  const healed = lines.find(({ event }) => event === 'log_healed')
  expect(healed).toMatchObject({ channels: ['orders'] })
  expect(lines.indexOf(healed)).toBeGreaterThan(lines.indexOf(audit.at(-1)))

  const back = await read(other.url, local.id)
  await back.got('event: sync-required')
  expect(back.text()).toContain('"reason":"epoch"')
})

test('a program that is told to wait for replicas says so in its answers (§5.6)', async () => {
  const redis = await openRedis()
  await openRedis({ replicaof: `127.0.0.1 ${redis.port}`, masterauth: password })
  const { url } = await serveOn(redis, { REJOIN_DURABILITY: 'replicated' })
  expect(await publish(url, 'first')).toMatchObject({ status: 201, durability: 'replicated' })
})

test('a wrong password is called that, and not shown', async () => {
  const { port } = await openRedis()
  const address = `redis://:${password}x@127.0.0.1:${port}`
  const failed = await promisify(execFile)(process.execPath, [program, 'serve', '--port', '0', '--log', address]).then(
    () => ({ code: 0, stderr: '' }),
    (error) => error,
  )
  expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('WRONGPASS') })
  expect(failed.stderr).toContain('. Check the name and the password in the address.')
  expect(failed.stderr).not.toContain(password)
  expect(failed.stderr).not.toContain('..')
})

async function openRedis(more: Record<string, string> = {}): Promise<RedisServer> {
  const settings = { requirepass: password, appendfsync: 'always', 'repl-diskless-sync-delay': 0, ...more }
  const redis = await startRedis({ settings })
  onTestFinished(() => redis.remove())
  return redis
}

async function serveOn({ port }: RedisServer, env: Record<string, string> = {}) {
  const lines: string[] = []
  const server = await startProgram({
    port: 0,
    env: { REJOIN_LOG: `redis://:${password}@127.0.0.1:${port}`, ...env },
    onLine: (line) => void lines.push(line),
  })
  onTestFinished(async () => void (await server.kill()))
  const printed = (event: string) =>
    until(`it prints ${event}`, () => lines.some((line) => line.includes(`"${event}"`)), patienceMs)
  const { url } = JSON.parse(lines.find((line) => line.includes('"server_ready"')) as string) as { url: string }
  return { url, lines, printed, server }
}

async function hubsOn({ port }: RedisServer): Promise<boolean> {
  const client = new Redis({ port, password, lazyConnect: true })
  const listed = String(await client.call('CLIENT', 'LIST'))
  client.disconnect()
  return listed.includes('name=rejoin:')
}

async function publish(url: string, data: string) {
  const response = await fetch(`${url}/publish/orders`, { method: 'POST', body: data })
  return { status: response.status, ...((await response.json()) as { id: string; durability: string }) }
}

/** Reads from the moment the stream is there, and comes back with its last id when the hub asks it to. */
async function read(url: string, lastEventId?: string) {
  const ending = new AbortController()
  const close = () => ending.abort()
  onTestFinished(close)
  let text = ''
  const follow = async (from = lastEventId): Promise<void> => {
    const headers = from === undefined ? {} : { 'last-event-id': from }
    const { body } = await fetch(`${url}/events/orders`, { headers, signal: ending.signal })
    const decoder = new TextDecoder()
    for await (const part of body as ReadableStream<Uint8Array>) text += decoder.decode(part, { stream: true })
    return follow([...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1])
  }
  follow().catch((error) => {
    if (!ending.signal.aborted) throw error
  })
  const got = async (part: string) => {
    await until(`the stream brings ${part}`, () => text.includes(part), patienceMs).catch((error) => {
      throw new Error(`${error.message} It has brought: ${text}`)
    })
  }
  await got('event: hello')
  return { text: () => text, events: () => eventsIn(text), got, close }
}

/** What was published, and where a reader was told to reload; told twice in a row is told once. */
function eventsIn(text: string): string[] {
  return [...text.matchAll(/^(?:event: (?!message)(\S+)\n(?:.+\n)*|data: (.+)\n)/gm)]
    .map(([, name, data]) => name ?? (data as string))
    .filter((event) => event !== 'hello' && event !== 'close')
    .filter((event, index, events) => event !== 'sync-required' || events[index - 1] !== event)
}

const patienceMs = 20_000
