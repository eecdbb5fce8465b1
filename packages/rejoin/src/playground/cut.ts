import type { IncomingMessage, ServerResponse } from 'node:http'
import { resetRequest } from '../http/reset-request.ts'

/**
 * Cuts the connections of one tab of the playground: the open ones are reset, and so is every new one until the time is over, as
 * when a proxy dies or a train enters a tunnel. The page simulates nothing: its clients see the same errors as anywhere else.
 */
export function createCut(): Cut {
  const streams = new Map<string, Set<IncomingMessage>>()
  const healing = new Map<string, NodeJS.Timeout>()

  return {
    begin(tab, ms) {
      clearTimeout(healing.get(tab))
      healing.set(tab, setTimeout(() => healing.delete(tab), ms).unref())
      for (const request of streams.get(tab) ?? []) resetRequest(request)
    },

    admit(tab, request, response) {
      // A response that waits behind another has no socket yet, and gets no 'close' when their socket closes.
      if (healing.has(tab) || response.socket === null) {
        resetRequest(request)
        return false
      }
      const open = streams.get(tab) ?? new Set()
      streams.set(tab, open.add(request))
      response.once('close', () => {
        open.delete(request)
        if (open.size === 0) streams.delete(tab)
      })
      return true
    },
  }
}

export interface Cut {
  /** Resets the open streams of a tab, and all streams that it opens in the next `ms` milliseconds. */
  begin(tab: string, ms: number): void
  /** Registers a new stream. With false the connection was reset: do not answer. */
  admit(tab: string, request: IncomingMessage, response: ServerResponse): boolean
}
