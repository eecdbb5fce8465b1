import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Hub } from '@rejoin/hub'
import type { Middleware } from '../middleware.ts'
import { refuse, refuseMethod } from '../refusal.ts'
import { requestTarget } from '../request-target.ts'
import { createCut } from './cut.ts'
import { channelOf, type LatestNumbers } from './latest-numbers.ts'
import { createPlainStream } from './plain-stream.ts'

/**
 * What the playground does beside reading and publishing, which it does like everybody else: an ordinary event stream to
 * compare with, and troubles to order. It must stand before the hub, because the line it cuts is the one to the hub.
 */
export function createPlayground(hub: PlaygroundHub, latest: LatestNumbers): Playground {
  const plain = createPlainStream()
  const cut = createCut()

  const doors: Readonly<Record<string, Door>> = {
    '/playground/plain': { methods: ['GET', 'POST'], answer: plainStream },
    '/playground/cut': { methods: ['POST'], answer: beginCut },
    '/playground/restart': { methods: ['POST'], answer: restart },
    '/playground/forget': { methods: ['POST'], answer: forget },
  }

  return {
    handle(request, response) {
      const target = requestTarget(request)
      const door = Object.hasOwn(doors, target.path) ? doors[target.path] : undefined
      const isCuttable = isStream(request, target.path)
      if (!door && !isCuttable) return false
      const query = target.query()
      const tab = tabOf(query)
      if (tab && isCuttable && !cut.admit(tab, request, response)) return true
      if (!door) return false
      if (!door.methods.includes(request.method ?? '')) refuseMethod(response, ...door.methods)
      else if (!tab) refuse(response, 400, 'invalid-data', tabAdvice)
      else door.answer({ request, response, tab, query })
      return true
    },
    close: () => plain.close(),
  }

  function plainStream({ request, response, tab, query }: Visit): void {
    if (request.method === 'GET') {
      plain.subscribe(tab, response)
      return
    }
    const number = query.get('n')
    if (!number || !/^\d{1,9}$/.test(number)) {
      refuse(response, 400, 'invalid-data', 'Say which number to send: ?n=1, of at most nine digits.')
      return
    }
    latest.set(tab, Number(number))
    plain.broadcast(tab, number)
    response.writeHead(204).end()
  }

  function beginCut({ response, tab, query }: Visit): void {
    const ms = Number(query.get('ms'))
    if (!Number.isInteger(ms) || ms < 1 || ms > maxCutMs) {
      refuse(response, 400, 'invalid-data', `Say for how long to cut: ?ms=5000, at most ${maxCutMs}.`)
      return
    }
    cut.begin(tab, ms)
    response.writeHead(204).end()
  }

  /** Ends the streams of a tab as a hub does that is about to be replaced. */
  function restart({ response, tab }: Visit): void {
    plain.end(tab)
    for (const { connection, channels } of hub.connections()) {
      if (channels.length === 1 && channels[0] === channelOf(tab)) {
        hub.disconnect(connection, { reason: 'drain', retryMs: restartRetryMs })
      }
    }
    response.writeHead(204).end()
  }

  /** Makes what a tab has published too old, at once: a window of hours is too long to be waited for. */
  function forget({ response, tab }: Visit): void {
    hub.invalidate(channelOf(tab)).then(
      () => response.writeHead(204).end(),
      () => refuse(response, 503, 'log-unavailable', 'The log does not answer. Try again.'),
    )
  }
}

export type PlaygroundHub = Pick<Hub, 'connections' | 'disconnect' | 'invalidate'>

export interface Playground {
  handle: Middleware
  /** Ends the streams that are not the hub's. */
  close(): void
}

interface Door {
  readonly methods: readonly string[]
  answer(visit: Visit): void
}

interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly tab: string
  readonly query: URLSearchParams
}

const tabAdvice = 'Say which tab this is: ?tab= with 8 to 32 lower-case letters and digits.'

/** Long enough to watch, and no way to keep a tab out for good. */
const maxCutMs = 30_000
// As patient as the plain stream is told to be.
const restartRetryMs = 1000

/** The name a tab gave itself, which also bounds what we keep for it. */
function tabOf(query: URLSearchParams): string | undefined {
  const tab = query.get('tab')
  return tab && /^[a-z0-9]{8,32}$/.test(tab) ? tab : undefined
}

function isStream(request: IncomingMessage, path: string): boolean {
  return request.method === 'GET' && (path === '/playground/plain' || /^\/(?:events|stream|poll)(?:\/|$)/.test(path))
}
