import type { Way } from '../probe-client.ts'
import { remedyFor } from '../remedies.ts'
import type { Check, Server } from '../report.ts'

/** Judges how many streams a browser can have: six over HTTP/1.1, about a hundred over HTTP/2. */
export function httpVersionCheck({ wire, base }: Pick<Way, 'wire' | 'base'>, server: Server): Check {
  const name = 'http-version'
  const { protocol, hostname } = new URL(base)
  if (wire.httpVersion === '2')
    return { name, state: 'good', summary: 'HTTP/2: the streams of a page share a connection' }
  if (isOfThisMachine(hostname)) return { name, state: 'good', summary: 'HTTP/1.1, on this machine' }
  const summary =
    protocol === 'https:'
      ? 'HTTP/1.1: a browser opens six streams at most'
      : 'plain HTTP: no encryption, six streams at most'
  return { name, state: 'hint', summary, remedy: remedyFor(name, server) }
}

function isOfThisMachine(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.')
}
