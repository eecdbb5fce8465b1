import type { RequestListener } from 'node:http'
import type { Route } from '../http/routes.ts'

/** The routes of the mDNS source. The source's own handler answers them. */
export function mdnsRoutes(handler: RequestListener): Route[] {
  return ['events', 'subscribe', 'browse', 'discover', 'resolve', 'status'].map((name) => ({
    method: 'GET',
    path: `/v1/mdns/${name}`,
    open: 'to-all',
    handle: () => ({ handOver: handler }),
  }))
}
