import { get } from 'node:http'
import { redisLog } from '@rejoin/hub/redis'
import { Redis } from 'ioredis'
import { SignJWT } from 'jose'
import { serve } from 'rejoin'
import { expect, onTestFinished, test } from 'vitest'
import { openRoundRobin } from '../../support/round-robin.ts'
import { operate } from './opened-log.ts'
import { between, eventually, redis } from './servers.ts'

const secret = 'kY7ryw1QsbCOpzUe3vT9aLxgF0mDJnh4'
const used = { status: 401, text: expect.stringContaining('used already') }

test('behind a proxy that leads each request to another hub, every ticket opens its stream, and none a second one', async () => {
  const { port } = await redis()
  const hubs = [await hubOn(port), await hubOn(port)]
  const proxy = await openRoundRobin(hubs)
  onTestFinished(() => proxy.close())
  for (let count = 0; count < 10; count += 1) {
    const ticket = await ticketFrom(proxy.url)
    expect(await open(proxy.url, ticket)).toMatchObject({ status: 200 })
    for (const url of hubs) expect(await open(url, ticket)).toMatchObject(used)
  }
})

test('a ticket that comes to two hubs at the same time opens one stream', async () => {
  const { port } = await redis()
  const [one, other] = [await hubOn(port), await hubOn(port)]
  for (let count = 0; count < 30; count += 1) {
    const ticket = await ticketFrom(one)
    const answers = await Promise.all([open(one, ticket), open(other, ticket)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
  }
})

test('after a failover a ticket from before it opens a stream, on any hub, also on one that starts then', async () => {
  const { proxy, failOver } = await withReplica()
  const [one, other] = [await hubOn(proxy.port), await hubOn(proxy.port)]
  await ticketFrom(other)
  const tickets = [await ticketFrom(one), await ticketFrom(one)]
  await failOver()
  const late = await eventually(() => hubOn(proxy.port))
  for (const [index, url] of [other, late].entries()) {
    await eventually(async () => expect(await open(url, tickets[index] as string)).toMatchObject({ status: 200 }))
    expect(await open(one, tickets[index] as string)).toMatchObject(used)
  }
})

test('a use that a replica has confirmed is known after the failover', async () => {
  const { proxy, replica, failOver } = await withReplica()
  // The new master has a replica too, so that uses can be confirmed there.
  await redis({ settings: { replicaof: `127.0.0.1 ${replica.port}` } })
  const [one, other] = [await hubOn(proxy.port, 'replicated'), await hubOn(proxy.port, 'replicated')]
  const ticket = await ticketFrom(one)
  expect(await open(one, ticket)).toMatchObject({ status: 200 })
  await failOver()
  await eventually(async () => expect(await open(other, ticket)).toMatchObject(used))
})

test('while Redis is away a ticket is not used up: its reader is told to come back, and gets in with it', async () => {
  const server = await redis()
  const proxy = await between(server)
  const [one, other] = [await hubOn(proxy.port), await hubOn(proxy.port)]
  expect(await open(other, await ticketFrom(one))).toMatchObject({ status: 200 })
  proxy.reject('reset')
  proxy.cutAll('reset')
  const ticket = await ticketFrom(one)
  expect(await open(other, ticket, { native: true })).toMatchObject({
    status: 200,
    text: expect.stringMatching(/retry: \d+[\s\S]*event: close\ndata: .*"log-unavailable"/),
  })
  proxy.accept()
  await eventually(async () => expect((await open(other, ticket, { native: true })).text).toContain('event: hello'))
})

async function withReplica() {
  const master = await redis({ settings: { 'repl-diskless-sync-delay': 0 } })
  const replica = await redis({ settings: { replicaof: `127.0.0.1 ${master.port}` } })
  await eventually(async () =>
    expect(String(await operate(master.port, 'INFO', 'replication'))).toContain('state=online'),
  )
  const proxy = await between(master)
  return {
    proxy,
    replica,
    async failOver() {
      expect(await operate(master.port, 'WAIT', '1', '5000')).toBe(1)
      await master.kill()
      await operate(replica.port, 'REPLICAOF', 'NO', 'ONE')
      proxy.target.port = replica.port
      proxy.cutAll('reset')
    },
  }
}

async function hubOn(port: number, durability?: 'replicated'): Promise<string> {
  const client = new Redis({ port, lazyConnect: true })
  const log = redisLog(client, { onWarning: () => undefined, ...(durability && { durability }) })
  const { url, close } = await serve({ port: 0, log, access: { jwt: [{ secret }] } })
  onTestFinished(() => close({ withinMs: 0 }))
  return url
}

async function ticketFrom(url: string): Promise<string> {
  const token = await new SignJWT({ rejoin: { subscribe: ['orders'] } })
    .setProtectedHeader({ alg: 'HS256' })
    .setSubject('ada')
    .setExpirationTime('10m')
    .sign(Buffer.from(secret))
  const headers = { authorization: `Bearer ${token}`, connection: 'close' }
  const response = await fetch(`${url}/ticket`, { method: 'POST', headers })
  expect(response.status).toBe(201)
  return ((await response.json()) as { ticket: string }).ticket
}

/** Opens a stream over a connection of its own, and closes it after the first frames. */
function open(url: string, ticket: string, { native = false } = {}): Promise<{ status: number; text: string }> {
  const accept = native ? { accept: 'text/event-stream' } : {}
  return new Promise((resolve, reject) => {
    const request = get(`${url}/events/orders?ticket=${ticket}`, { agent: false, headers: accept }, (response) => {
      const { statusCode: status = 0 } = response
      let text = ''
      response.setEncoding('utf8').on('error', () => undefined)
      response.on('data', (part: string) => {
        text += part
        if (text.includes('event: hello')) request.destroy()
      })
      response.on('close', () => resolve({ status, text }))
    })
    request.on('error', reject)
  })
}
