import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { onTestFinished } from 'vitest'
import { type Frame, openReader, type StreamReader } from '../../../../test/support/stream-reader.ts'
import { createMdns, type MdnsOptions } from '../../src/mdns.ts'
import { type Announced, announcement } from './announcement.ts'
import { fakeNetwork } from './fake-network.ts'

/** A source on a link without a socket and on virtual time, served over HTTP; closed with the test. */
export async function stage(options: MdnsOptions = {}) {
  const network = fakeNetwork()
  const time = createVirtualEnvironment()
  const mdns = await createMdns({ network: network.open, timing: time, ...options })
  const server = createServer((incoming, response) => mdns.handler(incoming, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await mdns.close()
  })

  return {
    ...{ network, time, mdns, server, url },
    announce: (announced?: Announced) => network.answer(...announcement(announced)),
    /** Opens a stream. Resolves when it has been answered. */
    read: (query = 'type=_http._tcp&idle_for=0', lastEventId?: string) =>
      openReader({
        port,
        path: `/v1/mdns/events?${query}`,
        headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
      }),
    async get(path: string, init?: RequestInit) {
      const response = await fetch(`${url}/v1/mdns/${path}`, init)
      return { status: response.status, body: await response.json() }
    },
    /** Lets time pass until it has come to an end. */
    async whileTimePasses<Result>(work: Promise<Result>): Promise<Result> {
      let isOver = false
      const over = work.finally(() => {
        isOver = true
      })
      while (!isOver) await time.advance(100)
      return over
    },
  }
}

/** The events of services that a reader has got. */
export function eventsOf({ frames }: StreamReader): Frame[] {
  return frames.filter(({ type }) => ['found', 'resolved', 'removed'].includes(type))
}

/** Whether so many events of services have come. */
export function hasEvents(count: number): (reader: StreamReader) => boolean {
  return (reader) => eventsOf(reader).length >= count
}

export function has(type: string): (reader: StreamReader) => boolean {
  return ({ frames }) => frames.some((frame) => frame.type === type)
}
