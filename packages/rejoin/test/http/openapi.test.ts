import { readFileSync } from 'node:fs'
import { hubEndpoints } from '@rejoin/hub/internal'
import { describe, expect, test } from 'vitest'
import { ticketRoute } from '../../src/access/ticket-route.ts'
import { chaosRoutes } from '../../src/chaos/chaos-routes.ts'
import { mdnsRoutes } from '../../src/mdns/mdns-routes.ts'
import { open, send } from '../support/http.ts'
import { asAdmin, observed } from '../support/observed.ts'

interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
}

interface Operation {
  summary: string
  security?: unknown
  parameters?: { name: string; in: string; schema?: unknown }[]
  responses: Record<string, unknown>
}

const methods = ['get', 'post', 'put', 'delete', 'patch']

describe('/openapi.json', () => {
  test('documents what everybody may ask, and what admins may', async () => {
    const { paths } = await documentOf((await observed()).url)
    const listed = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { security }]) => `${security ? 'admin ' : ''}${method} ${path}`),
    )
    expect(listed.sort()).toMatchInlineSnapshot(`
      [
        "admin get /admin/channels",
        "admin get /admin/connections",
        "admin get /admin/ids",
        "admin get /admin/live",
        "admin get /admin/maintenance",
        "admin get /admin/window",
        "admin get /debug/sse-state",
        "admin get /metrics",
        "admin post /admin/disconnect",
        "admin post /admin/drain",
        "admin post /admin/ids",
        "admin post /admin/invalidate",
        "admin post /admin/maintenance",
        "admin post /admin/revoke",
        "delete /channels/{channel}",
        "get /events",
        "get /events/{channel}",
        "get /healthz",
        "get /openapi.json",
        "get /poll",
        "get /poll/{channel}",
        "get /readyz",
        "get /stream",
        "get /stream/{channel}",
        "post /end/{channel}",
        "post /log",
        "post /publish",
        "post /publish/{channel}",
      ]
    `)
  })

  test('has every documented path and method, and no other method of it', async () => {
    const { url } = await observed()
    const { paths } = await documentOf(url)
    for (const [path, operations] of Object.entries(paths)) {
      for (const method of methods) {
        const { statusCode: status } = await open(url, path.replace('{channel}', '%00'), { method, headers: asAdmin })
        expect([`${method} ${path}`, status === 404, status === 405]).toEqual([
          `${method} ${path}`,
          false,
          !(method in operations),
        ])
      }
    }
  })

  test('has every endpoint of the hub', async () => {
    const { paths } = await documentOf((await observed()).url)
    expect(hubEndpoints.filter((endpoint) => !paths[`/${endpoint}/{channel}`])).toEqual([])
  })

  test('documents every status that a mistake of the caller gets', async () => {
    const { url } = await observed()
    const { paths } = await documentOf(url)
    for (const [path, operations] of Object.entries(paths)) {
      for (const [method, { responses }] of Object.entries(operations)) {
        const { statusCode: status } = await open(url, path.replace('{channel}', '%00'), {
          method,
          headers: asAdmin,
          ...(method === 'post' ? { body: '!' } : {}),
        })
        expect([path, Object.keys(responses)]).toEqual([path, expect.arrayContaining([String(status)])])
      }
    }
  })

  test('documents what readers of a deleted channel get', async () => {
    const { url, inner } = await observed()
    await inner.publish('orders', { data: 1 })
    await inner.delete('orders')
    const { paths } = await documentOf(url)
    for (const endpoint of ['events', 'stream', 'poll']) {
      const { statusCode } = await open(url, `/${endpoint}/orders?reject=status`)
      expect([endpoint, statusCode]).toEqual([endpoint, 410])
      for (const path of [`/${endpoint}`, `/${endpoint}/{channel}`]) {
        expect([path, Object.keys(paths[path]!.get!.responses)]).toEqual([path, expect.arrayContaining(['410'])])
      }
    }
  })

  test('documents what a publisher over its rate limit gets', async () => {
    const { url } = await observed({ handler: { rateLimit: () => 1000 } })
    const { paths } = await documentOf(url)
    for (const [path, method] of [
      ['/publish', 'post'],
      ['/publish/{channel}', 'post'],
      ['/end/{channel}', 'post'],
      ['/channels/{channel}', 'delete'],
    ] as const) {
      const body = method === 'post' ? { body: '{"channel":"orders","data":1}' } : {}
      const { statusCode } = await open(url, path.replace('{channel}', 'orders'), { method, ...body })
      expect([path, statusCode]).toEqual([path, 429])
      expect([path, Object.keys(paths[path]![method]!.responses)]).toEqual([path, expect.arrayContaining(['429'])])
    }
  })

  test('documents what a publish gets that a hub without its log passes on to its own readers', async () => {
    const { paths } = await documentOf((await observed()).url)
    for (const path of ['/publish', '/publish/{channel}']) {
      expect([path, Object.keys(paths[path]!.post!.responses)]).toEqual([path, expect.arrayContaining(['202'])])
    }
  })

  test('says that `false` does not set a flag of an event', async () => {
    const { paths } = await documentOf((await observed()).url)
    const flags = paths['/publish/{channel}']!.post!.parameters!.filter(({ name }) => /live|forget/.test(name))
    expect(flags.map(({ schema }) => schema)).toEqual([
      { type: 'string', description: 'Present means yes, unless the value is `false`.' },
      { type: 'string', description: 'Present means yes, unless the value is `false`.' },
    ])
  })

  test('leaves the admin API out where there is none, and has the tickets where there are rules', async () => {
    const { paths } = await documentOf(
      (await observed({ admin: undefined, routes: [ticketRoute(async () => ({ ticket: 'x', expiresAt: 0 }))] })).url,
    )
    expect(Object.keys(paths).filter((path) => /admin|metrics|debug/.test(path))).toEqual([])
    expect(paths['/ticket']).toBeDefined()
  })

  test('says of every operation what it is for, and of every parameter in a path that it is there', async () => {
    const { openapi, paths } = await documentOf((await observed()).url)
    expect(openapi).toBe('3.1.0')
    for (const [path, operations] of Object.entries(paths)) {
      for (const { summary, parameters = [], responses } of Object.values(operations)) {
        expect(summary).not.toBe('')
        expect(Object.keys(responses)).not.toEqual([])
        const inPath = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => `{${name}}`)
        expect(inPath).toEqual(path.match(/\{\w+\}/g) ?? [])
      }
    }
  })
})

test('docs/reference/serve.md has every path and method, and no other but the pages', async () => {
  const routes = [ticketRoute(async () => ({ ticket: 'x', expiresAt: 0 })), ...mdnsRoutes(() => undefined)]
  const { paths } = await documentOf((await observed({ routes })).url)
  const served = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const page = readFileSync(new URL('../../../../docs/reference/serve.md', import.meta.url), 'utf8')
  const table = page.slice(page.indexOf('## Paths'), page.indexOf('## On this machine only'))
  const listed = [...table.matchAll(/`((?:GET|POST|DELETE) [^`?]+)/g)].map(([, path = '']) =>
    path.replace('<channel>', '{channel}'),
  )
  // They are for tests of pages, and no part of the API.
  const troubles = chaosRoutes({ starts: () => 0 } as never).map(({ method, path }) => `${method} ${path}`)
  expect(listed.sort()).toEqual([...served, ...troubles, 'GET /', 'GET /dashboard'].sort())
})

async function documentOf(url: string): Promise<Document> {
  const { status, text } = await send(url, '/openapi.json')
  expect(status).toBe(200)
  return JSON.parse(text)
}
