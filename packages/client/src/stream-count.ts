import type { Off } from './handler-set.ts'
import type { StreamState } from './stream-state.ts'

/**
 * Warns on the console, once per host, when the streams of this page use up the browser's connections. Without TLS,
 * browsers speak HTTP/1.1 and open six connections to a host: with six streams, every other request to that host waits.
 * For development only.
 *
 * @param address - of the stream
 * @param onState - tells of changes of the stream's state
 */
export function countStream({ protocol, host }: URL, onState: (handler: (state: StreamState) => void) => Off): void {
  if (!('document' in globalThis) || protocol !== 'http:') return
  const stream = {}
  const streams = connected.get(host) ?? new Set()
  connected.set(host, streams)
  onState(({ state }) => {
    if (state === 'connected') streams.add(stream)
    else streams.delete(stream)
    if (streams.size < connectionsPerHost || told.has(host)) return
    told.add(host)
    console.warn(
      `This page reads ${streams.size} streams of ${host}. Over HTTP/1.1 a browser opens ${connectionsPerHost} connections to a host, for all ` +
        'its tabs together, so other requests wait. Serve over HTTP/2, set shareAcrossTabs or pauseWhenHidden, or read several ' +
        'channels on one stream.',
    )
  })
}

/** The limit of Chromium, Firefox and Safari. */
const connectionsPerHost = 6

/** The streams of this page that are connected, by host. */
const connected = new Map<string, Set<object>>()
/** The hosts that the warning was given for. */
const told = new Set<string>()
