import type { ProxyKindName } from '../../support/proxies/kinds.ts'

/** How people write them. */
export const proxyTitles: Readonly<Record<ProxyKindName, string>> = {
  nginx: 'nginx',
  haproxy: 'HAProxy',
  varnish: 'Varnish',
  caddy: 'Caddy',
  apache: 'Apache',
}
