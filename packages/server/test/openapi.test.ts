import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ticketPath } from '../src/observe/ticket-path.ts'
import { open, send } from './http.ts'
import { asAdmin, observed } from './observed.ts'

interface Document {
  openapi: string
  paths: Record<string, Record<string, Operation>>
}

interface Operation {
  summary: string
  security?: unknown
  parameters?: { name: string; in: string }[]
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
        "admin get /admin/live",
        "admin get /admin/maintenance",
        "admin get /admin/window",
        "admin get /debug/sse-state",
        "admin get /metrics",
        "admin post /admin/disconnect",
        "admin post /admin/drain",
        "admin post /admin/invalidate",
        "admin post /admin/maintenance",
        "admin post /admin/revoke",
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

  test('has every door of the hub', async () => {
    const { paths } = await documentOf((await observed()).url)
    const route = readFileSync(new URL('../../hub/src/http/route.ts', import.meta.url), 'utf8')
    const doors = /^export const doors = \[(.+?)\]/m.exec(route)?.[1]?.match(/\w+/g) ?? []
    expect(doors.length).toBeGreaterThan(3)
    expect(doors.filter((door) => !paths[`/${door}/{channel}`])).toEqual([])
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

  test('leaves the admin API out where there is none, and has the tickets where there are rules', async () => {
    const { paths } = await documentOf((await observed({ admin: undefined, paths: ticketPath })).url)
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

async function documentOf(url: string): Promise<Document> {
  const { status, text } = await send(url, '/openapi.json')
  expect(status).toBe(200)
  return JSON.parse(text)
}
