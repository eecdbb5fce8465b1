import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Middleware } from '../middleware.ts'
import { refuse, refuseMethod } from '../refusal.ts'
import { requestTarget } from '../request-target.ts'
import { createCut } from './cut.ts'
import { playgroundFiles } from './files.ts'
import { createPlainStream } from './plain-stream.ts'

/**
 * The playground: a page that publishes numbers to Rejoin and to an ordinary event stream, and cuts both. It must stand
 * before the hub, because the line it cuts is the one to the hub.
 */
export function createPlayground(): Playground {
  const files = playgroundFiles()
  const plain = createPlainStream()
  const cut = createCut()

  return {
    handle(request, response, next) {
      const target = requestTarget(request)
      const { path } = target
      const isOurs = path === '/playground/plain' || path === '/playground/cut'
      if (!isOurs && !isStream(request, path)) {
        files(request, response, next)
        return
      }
      const query = target.query()
      const tab = tabOf(query)
      if (tab && isStream(request, path) && !cut.admit(tab, request, response)) return
      if (!isOurs) next()
      else if (!tab) refuse(response, 400, 'invalid-data', tabAdvice)
      else if (path === '/playground/plain') plainStream(request, response, tab, query.get('n'))
      else beginCut(request, response, tab, query.get('ms'))
    },
    close: () => plain.close(),
  }

  function plainStream(request: IncomingMessage, response: ServerResponse, tab: string, number: string | null): void {
    if (request.method === 'GET') {
      plain.subscribe(tab, response)
    } else if (request.method !== 'POST') {
      refuseMethod(response, 'GET', 'POST')
    } else if (!number || !/^\d{1,9}$/.test(number)) {
      refuse(response, 400, 'invalid-data', 'Say which number to send: ?n=1, of at most nine digits.')
    } else {
      plain.broadcast(tab, number)
      response.writeHead(204).end()
    }
  }

  function beginCut(request: IncomingMessage, response: ServerResponse, tab: string, duration: string | null): void {
    const ms = Number(duration)
    if (request.method !== 'POST') {
      refuseMethod(response, 'POST')
    } else if (!Number.isInteger(ms) || ms < 1 || ms > maxCutMs) {
      refuse(response, 400, 'invalid-data', `Say for how long to cut: ?ms=5000, at most ${maxCutMs}.`)
    } else {
      cut.begin(tab, ms)
      response.writeHead(204).end()
    }
  }
}

export interface Playground {
  handle: Middleware
  /** Ends the streams that are not the hub's. */
  close(): void
}

const tabAdvice = 'Say which tab this is: ?tab= with 8 to 32 lower-case letters and digits.'

/** Long enough to watch, and no way to keep a tab out for good. */
const maxCutMs = 30_000

/** The name a tab gave itself, which also bounds what we keep for it. */
function tabOf(query: URLSearchParams): string | undefined {
  const tab = query.get('tab')
  return tab && /^[a-z0-9]{8,32}$/.test(tab) ? tab : undefined
}

function isStream(request: IncomingMessage, path: string): boolean {
  return request.method === 'GET' && (path === '/playground/plain' || /^\/(?:events|stream|poll)(?:\/|$)/.test(path))
}
