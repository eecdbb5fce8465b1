import { hubEndpoints } from '@rejoin/hub/internal'
import { expect, onTestFinished, test, vi } from 'vitest'
import { serveWithChaos } from '../../src/chaos/serve-with-chaos.ts'
import type { Route } from '../../src/http/routes.ts'
import { secret } from '../access/guarded.ts'
import { send } from '../support/http.ts'

const served = vi.hoisted(() => [] as Route[])
vi.mock('../../src/http/routes.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/http/routes.ts')>()
  const serveRoutes: typeof original.serveRoutes = (routes, options) => {
    served.push(...routes)
    return original.serveRoutes(routes, options)
  }
  return { ...original, serveRoutes }
})

test('/openapi.json has every route of a program with everything switched on, but for pages and what is for tests', async () => {
  const server = await serveWithChaos(
    {
      port: 0,
      admin: { token: 'an-admin-token-of-the-tests', port: 0 },
      access: { jwt: [{ secret }] },
      playground: true,
      mdns: { interface: '127.0.0.1' },
    },
    {},
  )
  onTestFinished(() => server.close())
  const { text } = await send(server.url, '/openapi.json')
  const { paths } = JSON.parse(text) as { paths: Record<string, object> }
  const documented = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const ofHub = new RegExp(`^[A-Z]+ /(?:${hubEndpoints.join('|')})(?:/|$)`)
  const isPage = ({ path }: Route) => /^\/(?:dashboard|pages\/.*|playground\/.*|chaos(?:\/.*)?)?$/.test(path)
  const routes = new Set(served.filter((route) => !isPage(route)).map(({ method, path }) => `${method} ${path}`))
  expect(documented.filter((each) => !ofHub.test(each)).sort()).toEqual([...routes].sort())
})
