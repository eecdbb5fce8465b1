import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub, type Hub, type HubOptions } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { type NodeHandlerOptions, nodeHandler } from '@rejoin/hub/node'
import { onTestFinished } from 'vitest'
import { createObservation, type Observation, type ObservationOptions } from '../../src/observation.ts'
import { type Received, send } from './http.ts'

export const adminToken = 'an-admin-token-of-the-tests'
export const asAdmin = { authorization: `Bearer ${adminToken}` }

export interface Observed extends Observation {
  /** Of the public port, and of the admin port. */
  readonly url: string
  readonly adminUrl: string
  /** What stands behind the observation. */
  readonly inner: Hub
}

/** A hub that is observed, on two ports, closed with the test. */
export async function observed(
  options: Partial<ObservationOptions> & { hubOptions?: Partial<HubOptions>; handler?: NodeHandlerOptions } = {},
): Promise<Observed> {
  const { hubOptions, handler, ...rest } = options
  const inner = rest.hub ?? (await createHub({ log: memoryLog(), ...hubOptions }))
  const observation = await createObservation({ hub: inner, version: '1.2.3', admin: { token: adminToken }, ...rest })
  const last = nodeHandler(inner, handler)
  const url = await listening((request, response) => {
    if (!observation.middleware(request, response)) last(request, response)
  })
  const adminUrl = await listening(observation.adminHandler)
  onTestFinished(async () => {
    await observation.close()
    await inner.close()
  })
  return { ...observation, url, adminUrl, inner }
}

/** The answer to a request of an admin, as JSON. */
export async function admin(url: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const { status, text } = await send(url, path, { headers: asAdmin, ...sent })
  return { status, body: text === '' ? undefined : JSON.parse(text) }
}

export function publish(url: string, channel: string, body: string): Promise<Received> {
  return send(url, `/publish/${channel}`, { method: 'POST', body })
}

async function listening(handler: RequestListener): Promise<string> {
  const server: Server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
