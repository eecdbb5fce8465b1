import type { ServerResponse } from 'node:http'
import {
  heartbeatAfter,
  longestProbeMs,
  type ProbeHello,
  type ProbeScript,
  type ProbeTick,
  probeId,
  silentForMs,
  spacedEvents,
  spacedEveryMs,
} from '@rejoin/doctor/probe'
import { encodeComment, encodeEvent } from '@rejoin/protocol'

/** Writes a probe from its first frame to its end. Returns a function that stops it. */
export function playScript(
  { script, token }: { readonly script: ProbeScript; readonly token: string },
  hello: ProbeHello,
  response: ServerResponse,
): () => void {
  const startedAt = performance.now()
  let n = 0
  let timer: NodeJS.Timeout | undefined

  function send(type: string, data: object): void {
    response.write(encodeEvent({ type, id: probeId(token, n), data: JSON.stringify(data) }))
  }

  function tick(): void {
    n += 1
    send('tick', { n, atMs: Math.round(performance.now() - startedAt) } satisfies ProbeTick)
    if (n % heartbeatAfter === 0) response.write(heartbeat)
    if (n >= spacedEvents) end()
  }

  function end(): void {
    stop()
    n += 1
    send('end', {})
    response.end()
  }

  function stop(): void {
    clearInterval(timer)
    clearTimeout(longest)
  }

  const longest = setTimeout(end, script === 'silent' ? silentForMs : longestProbeMs)
  send('probe', hello)
  if (script === 'spaced') timer = setInterval(tick, spacedEveryMs)
  if (script === 'beating') timer = setInterval(() => response.write(heartbeat), hello.heartbeatMs)
  return stop
}

const heartbeat = encodeComment('hb')
