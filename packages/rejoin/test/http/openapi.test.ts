import { readFileSync } from 'node:fs'
import { hubEndpoints, maxRecords } from '@rejoin/hub/internal'
import { toJsonSchema } from '@valibot/to-json-schema'
import { describe, expect, test } from 'vitest'
import { ticketRoute } from '../../src/access/tickets.ts'
import * as bodies from '../../src/admin/admin-bodies.ts'
import { chaosRoutes } from '../../src/chaos/chaos-routes.ts'
import { mdnsRoutes } from '../../src/mdns.ts'
import { version } from '../../src/version.ts'
import { open, send } from '../support/http.ts'
import { asAdmin, observed } from '../support/observed.ts'

interface Document {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
}

interface Operation {
  summary: string
  security: readonly object[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  parameters?: { name: string; in: string; schema?: unknown }[]
  responses: Record<string, unknown>
}

interface Schema {
  properties?: Record<string, Schema>
  oneOf?: Schema[]
  [keyword: string]: unknown
}

const methods = ['get', 'post', 'put', 'delete', 'patch']

/** A program with every route of the document. */
function complete() {
  const ticket = ticketRoute(async () => ({ ticket: 'x', expiresAt: 0 }))
  const mdns = mdnsRoutes((_request, response) => void response.writeHead(200).end())
  return observed({ routes: [ticket, ...mdns] })
}

describe('/openapi.json', () => {
  test('says which paths are for admins, which take a token, and which are for everybody', async () => {
    const { paths } = await documentOf((await observed()).url)
    const whom = { admin: 'admins', token: 'token' } as Record<string, string>
    const listed = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, { security }]) => {
        const schemes = security.flatMap((each) => Object.keys(each))
        return `${schemes.map((each) => whom[each]).join() || 'all'} ${method} ${path}`
      }),
    )
    expect(listed.sort()).toMatchInlineSnapshot(`
      [
        "admins get /admin/channels",
        "admins get /admin/connections",
        "admins get /admin/ids",
        "admins get /admin/live",
        "admins get /admin/maintenance",
        "admins get /debug/sse-state",
        "admins get /metrics",
        "admins post /admin/disconnect",
        "admins post /admin/drain",
        "admins post /admin/ids",
        "admins post /admin/invalidate",
        "admins post /admin/maintenance",
        "admins post /admin/revoke",
        "all get /healthz",
        "all get /openapi.json",
        "all get /readyz",
        "all post /log",
        "token delete /channels/{channel}",
        "token get /events",
        "token get /events/{channel}",
        "token get /poll",
        "token get /poll/{channel}",
        "token get /stream",
        "token get /stream/{channel}",
        "token get /v1/mdns/browse",
        "token get /v1/mdns/discover",
        "token get /v1/mdns/events",
        "token get /v1/mdns/resolve",
        "token get /v1/mdns/status",
        "token get /v1/mdns/subscribe",
        "token post /end/{channel}",
        "token post /publish",
        "token post /publish/{channel}",
        "token post /ticket",
      ]
    `)
  })

  test('is the same with and without an admin API, and has the version of the program', async () => {
    const [with_, without] = [await observed(), await observed({ admin: undefined })]
    const document = await documentOf(with_.url)
    expect(await documentOf(without.url)).toEqual(document)
    expect(document.info.version).toBe(version)
  })

  test('has every documented path and method, and no other method of it', async () => {
    const { url } = await complete()
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
    const { url } = await complete()
    const { paths } = await documentOf(url)
    // What answers for the services of the network is in another package, and here a stand-in.
    for (const [path, operations] of Object.entries(paths).filter(([path]) => !path.startsWith('/v1/mdns/'))) {
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

  test.each([
    ['disconnect', bodies.disconnectBody],
    ['drain', bodies.drainBody],
    ['ids', bodies.idsBody],
    ['invalidate', bodies.invalidateBody],
    ['maintenance', bodies.maintenanceBody],
    ['revoke', bodies.revokeBody],
  ])('documents the body of /admin/%s as it is checked', async (action, schema) => {
    const { paths } = await documentOf((await observed()).url)
    const documented = bodyOf(paths[`/admin/${action}`]!.post!)
    // Whether exactly one of two fields is there is said in words.
    const { $schema: _, ...checked } = toJsonSchema(schema, { typeMode: 'input', ignoreActions: ['check'] })
    expect(withoutWords(documented)).toEqual(withoutWords(checked as Schema))
  })

  test('has a body for every action of the admin API', async () => {
    const { paths } = await documentOf((await observed()).url)
    const actions = Object.entries(paths).filter(([path, { post }]) => path.startsWith('/admin/') && post)
    expect(actions.map(([path]) => `${path.replace('/admin/', '')}Body`).sort()).toEqual(Object.keys(bodies).sort())
  })

  test('documents how many reports of reconnects a post may hold', async () => {
    const { paths } = await documentOf((await observed()).url)
    expect(bodyOf(paths['/log']!.post!).oneOf).toContainEqual(expect.objectContaining({ maxItems: maxRecords }))
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
  const { paths } = await documentOf((await observed()).url)
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

/** The document, with what its references stand for in their places. */
async function documentOf(url: string): Promise<Document> {
  const { status, text } = await send(url, '/openapi.json')
  expect(status).toBe(200)
  const document = JSON.parse(text)
  const resolve = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(resolve)
    if (typeof part !== 'object' || part === null) return part
    const { $ref } = part as { $ref?: string }
    if ($ref === undefined) return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, resolve(value)]))
    const steps = $ref.replace('#/', '').split('/')
    return resolve(steps.reduce((inner, step) => inner[step], document))
  }
  return resolve(document) as Document
}

function bodyOf({ requestBody }: Operation): Schema {
  return requestBody!.content['application/json']!.schema
}

/** A schema without its descriptions. A string that may not be empty is a string with a length, in either way to say so. */
function withoutWords({ description: _, ...schema }: Schema): Schema {
  const properties = Object.entries(schema.properties ?? {}).map(([name, each]) => [name, withoutWords(each)])
  return schema.properties ? { ...schema, properties: Object.fromEntries(properties) } : schema
}
