import { readFileSync } from 'node:fs'
import type { Route } from './routes.ts'

/** `GET /openapi.json`: every path and method of the program, also those that the settings leave out. */
export function openApiRoute(): Route {
  const body = readFileSync(new URL('../../openapi.json', import.meta.url))
  return { method: 'GET', path: '/openapi.json', open: 'to-all', handle: () => ({ status: 200, body }) }
}
