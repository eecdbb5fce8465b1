import type { IncomingMessage } from 'node:http'
import { isReaderEndpoint, targetOf } from '@rejoin/hub/internal'
import type { Middleware } from '../http/chain.ts'
import { reject } from '../http/rejection.ts'
import { badRule } from './identity.ts'
import { answerPreflight } from './origins.ts'

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

/**
 * Lets in this machine only (§8). Binding to a loopback address is not enough: a browser on this machine would send the requests
 * of any page that its user visits. `Origin` reveals such a page. `Host` reveals a page that has pointed its own name at
 * 127.0.0.1 after it was loaded (DNS rebinding).
 *
 * Pages of other servers on this machine may use the hub, so their origin gets the CORS headers.
 */
export function loopbackOnly(): Middleware {
  // The host of the last request that was let in. Most requests have the same, and to examine it takes 2 µs.
  let allowed = 'localhost'

  return (request, response) => {
    const { host, origin } = request.headers
    const forbid = (message: string, reason: 'host' | 'origin') => reject(response, 'forbidden', message, reason)
    // `Vary` is set even without an origin: otherwise a cache could give an answer without CORS headers to a page. Publishers and
    // readers, the most frequent requests, do not need it: no cache keeps their answers, and a stream has a `Vary` of its own.
    if (origin !== undefined || isCacheable(request)) response.setHeader('Vary', 'Origin')
    if (!request.url?.startsWith('/')) {
      // A target with a host of its own may name another host than `Host` does. No browser sends one.
      forbid('Send the path alone as the target of the request.', 'host')
    } else if (host === undefined || (host !== allowed && !isLoopbackHost(host))) {
      forbid(`This hub is open to its own machine only. ${addressAdvice(host)}`, 'host')
    } else if (origin === undefined) {
      allowed = host
      return false
    } else if (!isLoopbackOrigin(origin)) {
      forbid(`Pages of ${quoted(origin)} may not use this hub, only those of localhost. ${noRules}`, 'origin')
    } else {
      response.setHeader('Access-Control-Allow-Origin', origin)
      return answerPreflight(request, response)
    }
    return true
  }
}

function isCacheable(request: IncomingMessage): boolean {
  return request.method !== 'POST' && !isReaderEndpoint(targetOf(request).endpoint)
}

// `rejoin doctor` looks for these words: they tell a hub without access rules from a hub that does not list the origin.
const noRules = 'It has no access rules; with rules, its operator can list other origins.'

/** Whether a `Host` header, with or without a port, names this machine without asking DNS. */
export function isLoopbackHost(host: string | undefined): boolean {
  const name = /^(.+?)(?::\d{1,5})?$/.exec(host ?? '')?.[1]?.toLowerCase()
  return (
    name !== undefined && (/^(?:[a-z0-9-]+\.)*localhost$/.test(name) || name === '[::1]' || ipv4Loopback.test(name))
  )
}

/** Whether an `Origin` header is that of a page of this machine. `null`, which sandboxed pages send, is not. */
export function isLoopbackOrigin(origin: string): boolean {
  return isLoopbackHost(/^https?:\/\/([^/?#@\\\s]+)$/.exec(origin)?.[1])
}

/** Whether an address, as a resolver gives it, can be reached from this machine only. */
export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || ipv4Loopback.test(address)
}

const ipv4Loopback = /^127(?:\.(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){3}$/

function addressAdvice(host: string | undefined): string {
  return host === undefined
    ? 'The request names no host; address it as localhost or 127.0.0.1.'
    : `Address it as localhost or 127.0.0.1, not as ${quoted(host)}.`
}

function quoted(value: string): string {
  return JSON.stringify(value.slice(0, 100))
}
