import type { IncomingMessage } from 'node:http'
import { targetOf } from '@rejoin/hub/internal'
import type { Middleware } from '../http/middleware.ts'
import { reject } from '../http/rejection.ts'
import { badRule } from './identity.ts'

/**
 * Rejects a request that names two hosts (RFC 9112, section 3.2). A proxy may have judged it by the one host, and the hub would
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

/** Over HTTP/2, a `host` that differs from `:authority` is a second host. */
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
 * Rejects requests for hosts that are not listed. It stops DNS rebinding: a page can point its own name at the hub after it was
 * loaded, and its browser then takes the hub for the page's own origin. Only `Host` shows this. Health checks pass, because they
 * use an address instead of a name and learn nothing else.
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
