import type { Hub, HubAdmin } from '@rejoin/hub'
import { isReaderEndpoint, targetOf } from '@rejoin/hub/internal'
import { RejoinError } from '@rejoin/protocol'
import { invalidData } from '../errors.ts'
import type { Middleware } from '../http/chain.ts'
import type { Call, HandOver, Result, Route } from '../http/routes.ts'
import { createCut } from './cut.ts'
import { channelOf, type LatestNumbers } from './latest-numbers.ts'
import { createPlainStream } from './plain-stream.ts'

/** The playground reads and publishes like any other page. Its own routes add a plain stream for comparison, and troubles. */
export function createPlayground(hub: PlaygroundHub, latest: LatestNumbers): Playground {
  const plain = createPlainStream()
  const cut = createCut()

  return {
    routes: [
      { method: 'GET', path: '/playground/plain', open: 'to-all', handle: withTab(readPlain) },
      { method: 'POST', path: '/playground/plain', open: 'to-all', handle: withTab(sendPlain) },
      { method: 'POST', path: '/playground/cut', open: 'to-all', handle: withTab(beginCut) },
      { method: 'POST', path: '/playground/restart', open: 'to-all', handle: withTab(restart) },
      { method: 'POST', path: '/playground/forget', open: 'to-all', handle: withTab(forget) },
    ],
    middleware(request, response) {
      const target = targetOf(request)
      if (request.method !== 'GET' || !isReaderEndpoint(target.endpoint) || !target.mayHave('tab')) return false
      const tab = tabOf(target.query)
      return tab !== undefined && !cut.admit(tab, request, response)
    },
    close: () => plain.close(),
  }

  function readPlain({ tab }: Visit): HandOver {
    return {
      handOver: (request, response) => void (cut.admit(tab, request, response) && plain.subscribe(tab, response)),
    }
  }

  function sendPlain({ tab, query }: Visit): Result {
    const number = query.get('n')
    if (!number || !/^\d{1,9}$/.test(number))
      throw invalidData('Say which number to send: ?n=1, of at most nine digits.')
    latest.set(tab, Number(number))
    plain.broadcast(tab, number)
    return done
  }

  function beginCut({ tab, query }: Visit): Result {
    const ms = Number(query.get('ms'))
    if (!Number.isInteger(ms) || ms < 1 || ms > maxCutMs) {
      throw invalidData(`Say for how long to cut: ?ms=5000, at most ${maxCutMs}.`)
    }
    cut.begin(tab, ms)
    return done
  }

  /** Ends the streams of a tab, as a hub does when it is about to be replaced. */
  function restart({ tab }: Visit): Result {
    plain.end(tab)
    for (const { connection, channels } of hub.admin.connections()) {
      if (channels.length === 1 && channels[0] === channelOf(tab)) {
        hub.admin.disconnectHere(connection, { reason: 'drain', retryMs: restartRetryMs })
      }
    }
    return done
  }

  /** Makes the events of a tab a gap at once, because nobody waits until a window of hours is over. */
  async function forget({ tab }: Visit): Promise<Result> {
    try {
      await hub.invalidate(channelOf(tab))
    } catch (cause) {
      throw new RejoinError('The log does not answer. Try again.', { code: 'log-unavailable', retryable: true, cause })
    }
    return done
  }
}

export interface PlaygroundHub extends Pick<Hub, 'invalidate'> {
  readonly admin: Pick<HubAdmin, 'connections' | 'disconnectHere'>
}

export interface Playground {
  readonly routes: readonly Route[]
  /** Cuts the connections that a tab has to the hub. Stands before the hub. */
  readonly middleware: Middleware
  /** Ends the plain streams. */
  close(): void
}

interface Visit extends Call {
  readonly tab: string
}

function withTab(handle: (visit: Visit) => Result | Promise<Result> | HandOver): Route['handle'] {
  return (call) => {
    const tab = tabOf(call.query)
    if (tab === undefined) throw invalidData('Say which tab this is: ?tab= with 8 to 32 lower-case letters and digits.')
    return handle({ ...call, tab })
  }
}

const done: Result = { status: 204 }

/** Long enough to watch, and too short to lock a tab out. */
const maxCutMs = 30_000
// The retry time of the plain stream, so that both lanes wait equally long.
const restartRetryMs = 1000

/** The name that a tab gave itself. Its length is bounded, because it is kept in memory. */
function tabOf(query: URLSearchParams): string | undefined {
  const tab = query.get('tab')
  return tab && /^[a-z0-9]{8,32}$/.test(tab) ? tab : undefined
}
