import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { startProgram } from '../../support/program.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { type Frame, openReader, type StreamReader } from '../../support/stream-reader.ts'
import type { Link } from './link.ts'

/** `rejoin serve --mdns` on a link, ended with the test. */
export async function startHub(link: Link, env: Readonly<Record<string, string>> = {}): Promise<ServerProcess> {
  const mdns = { REJOIN_LOG: 'memory', REJOIN_MDNS: 'true', REJOIN_MDNS_INTERFACE: link.addresses.hub }
  const server = await startProgram({ port: link.hubPort, under: link.hub, env: { ...mdns, ...env } })
  onTestFinished(async () => void (await server.stop()))
  return server
}

/** A reader of the services of a type, from the beginning or behind an id. */
export function read({ socketPath, hubPort }: Link, lastEventId?: string): Promise<StreamReader> {
  const path = '/v1/mdns/events?type=_http._tcp&idle_for=0'
  const cursor = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  return openReader({ socketPath, path, headers: { host: `127.0.0.1:${hubPort}`, ...cursor } })
}

export async function getJson({ socketPath, hubPort }: Link, path: string): Promise<Record<string, unknown>> {
  const outgoing = request({ socketPath, path, headers: { host: `127.0.0.1:${hubPort}` } }).end()
  const [response] = await once(outgoing, 'response')
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += part
  return JSON.parse(text)
}

export function eventsOf({ frames }: Pick<StreamReader, 'frames'>): Frame[] {
  return frames.filter(({ type }) => ['found', 'resolved', 'removed'].includes(type))
}

/** A responder of ours, ended with the test. It says what it is told to say, and nothing else. */
export async function startResponder(link: Link): Promise<Responder> {
  const [command = '', ...args] = [...link.responders, process.execPath]
  const file = fileURLToPath(new URL('responder.js', import.meta.url))
  const child: ChildProcess = fork(file, [link.addresses.responders], { execPath: command, execArgv: args })
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    child.disconnect()
    await ended
  })
  await once(child, 'message')
  return {
    async announce({ name, port, ttl = 120 }) {
      const type = '_http._tcp.local'
      const fullName = `${name}.${type}`
      const sent = once(child, 'message')
      child.send([
        { type: 'PTR', name: type, ttl, data: fullName },
        { type: 'SRV', name: fullName, ttl, flush: true, data: { target: 'other.local', port } },
        { type: 'TXT', name: fullName, ttl, flush: true, data: ['path=/'] },
        { type: 'A', name: 'other.local', ttl, flush: true, data: link.addresses.responders },
      ])
      const [answer] = await sent
      if (answer !== 'sent') throw new Error(answer)
    },
  }
}

export interface Responder {
  announce(service: { name: string; port: number; ttl?: number }): Promise<void>
}
