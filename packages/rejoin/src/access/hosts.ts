import type { IncomingMessage } from 'node:http'
import { targetOf } from '@rejoin/hub/internal'
import type { Middleware } from '../http/middleware.ts'
import { reject } from '../http/rejection.ts'
import { badRule } from './identity.ts'

/**
 * Rejects a request that names two hosts (RFC 9112, section 3.2): a proxy may have judged it by one of them, and we would
 * judge it by the other.
 */
export function oneHost(onReject: (kind: 'malformed') => void): Middleware {
  return (request, response) => {
    if (!hasTwoHosts(request)) return false
    onReject('malformed')
    response.setHeader('Connection', 'close')
    reject(response, 'invalid-option', 'The request names more than one host. Send one Host header.')
    return true
  }
}

/** Over HTTP/2, `host` beside another `:authority`. */
function hasTwoHosts({ rawHeaders, headers, httpVersionMajor }: IncomingMessage): boolean {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  if (httpVersionMajor === 1 || hosts === 0) return hosts > 1
  const authority = headers[':authority']
  return hosts > 1 || (authority !== undefined && authority !== headers.host)
}

/**
 * Rejects requests for other hosts than these. A page whose own name was pointed at the hub after it had been loaded is of the
 * hub's own origin to its browser, and `Host` alone gives it away. Probes of health ask by address, and learn nothing else.
 *
 * @param hosts - names without a port; `*.example.com` is every name below it
 */
export function allowedHosts(hosts: readonly string[]): Middleware {
  for (const host of hosts) checkHost(host)
  const names = new Set(hosts)
  const suffixes = hosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(1))

  return (request, response) => {
    const name = (request.headers.host ?? '').replace(/:\d*$/, '').toLowerCase()
    if (names.has(name) || suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length)) return false
    if (probes.has(targetOf(request).endpoint)) return false
    reject(
      response,
      'forbidden',
      `This hub is not addressed as ${JSON.stringify(name.slice(0, 100))}. Its operator can list the name in access.hosts.`,
      'host',
    )
    return true
  }
}

const probes: ReadonlySet<string> = new Set(['healthz', 'readyz'])

function checkHost(host: string): void {
  if (/^(?:\*\.)?[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?$/.test(host) || /^\[[0-9a-f:.]+\]$/.test(host)) return
  throw badRule(
    `${JSON.stringify(host)} is no name of a host. Write it in lower case and without a port: hub.example.com`,
  )
}
