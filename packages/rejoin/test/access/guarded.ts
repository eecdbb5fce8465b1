import type { KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Grant, type Hub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { nodeHandler } from '@rejoin/hub/node'
import { RejoinError } from '@rejoin/protocol'
import { type JWTPayload, SignJWT } from 'jose'
import { onTestFinished } from 'vitest'
import { type Access, createAccess } from '../../src/access/access.ts'
import type { AccessRules } from '../../src/access/rules.ts'
import { serveRoutes } from '../../src/http/routes.ts'

export const secret = 'kY7ryw1QsbCOpzUe3vT9aLxgF0mDJnh4'

/** A moment that no test has to wait for. */
export const noon = Date.UTC(2026, 5, 1, 12)

export const inAnHour = noon / 1000 + 3600

/** A hub behind the rules, on a free port, closed with the test. */
export async function guarded(rules: AccessRules, now?: () => number): Promise<Guarded> {
  const hub = await createHub({ log: memoryLog() })
  const access = createAccess(rules, now ? { now } : {})
  const isAdmin = () => false
  const routes = serveRoutes([access.ticketRoute], { isAdmin, trustProxy: false, hub })
  const serveHub = nodeHandler(hub, { authorize: access.authorize })
  const server = createServer((request, response) => {
    if (!access.middleware(request, response) && !routes(request, response)) serveHub(request, response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    await hub.close()
    access.close()
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, hub, access }
}

export interface Guarded {
  readonly url: string
  readonly hub: Hub
  readonly access: Access
}

/** A token as an honest issuer makes it, good at noon. */
export function token(
  claims: JWTPayload = {},
  key: string | CryptoKey | KeyObject = secret,
  header = {},
): Promise<string> {
  const { alg = 'HS256', ...rest } = header as { alg?: string }
  return new SignJWT({ sub: 'alice', exp: inAnHour, rejoin: { subscribe: ['orders/*'] }, ...claims })
    .setProtectedHeader({ alg, ...rest })
    .sign(typeof key === 'string' ? Buffer.from(key) : key)
}

/** What rules make of a token at noon: the grant, or why there is none. */
export async function judged(rules: AccessRules, text: string): Promise<Grant | string | null> {
  return verdict(createAccess(rules, { now: () => noon }), { authorization: `Bearer ${text}` })
}

export async function verdict(access: Access, headers: object, url = '/events/orders/1', method = 'GET') {
  const request = { method, url, headers } as IncomingMessage
  try {
    return await access.authorize(request)
  } catch (error) {
    if (error instanceof RejoinError) return `${error.code}: ${error.message}`
    throw error
  }
}
