import type { AnswerHeaders } from './wire.ts'

/** Proxies for which the doctor knows the lines to change. */
export const proxyNames = ['nginx', 'haproxy', 'varnish', 'caddy', 'apache', 'cloudflare', 'alb', 'fastly'] as const

export type ProxyName = (typeof proxyNames)[number]

/** The names of the proxies as people write them. */
export const proxyTitles: Readonly<Record<ProxyName, string>> = {
  nginx: 'nginx',
  haproxy: 'HAProxy',
  varnish: 'Varnish',
  caddy: 'Caddy',
  apache: 'Apache',
  cloudflare: 'Cloudflare',
  alb: 'AWS ALB',
  fastly: 'Fastly',
}

/** The proxy that answered, by its headers. Undefined for a proxy that does not show itself, such as HAProxy. */
export function proxyOf(headers: AnswerHeaders): { name: ProxyName; text: string } | undefined {
  const server = headers.get('server') ?? ''
  const via = headers.get('via') ?? ''
  const found = signs.find(({ header, text }) => text.test(headers.get(header) ?? ''))
  if (!found) return undefined
  const named = [server, via].find((each) => each.toLowerCase().includes(found.name))
  return { name: found.name, text: named ?? proxyTitles[found.name] }
}

const signs: readonly { name: ProxyName; header: string; text: RegExp }[] = [
  // Services first: they often pass on the names of the programs behind them.
  { name: 'cloudflare', header: 'cf-ray', text: /./ },
  { name: 'fastly', header: 'x-served-by', text: /^cache-/ },
  { name: 'alb', header: 'server', text: /^awselb/ },
  { name: 'varnish', header: 'x-varnish', text: /./ },
  { name: 'varnish', header: 'via', text: /varnish/i },
  { name: 'caddy', header: 'server', text: /^caddy/i },
  { name: 'caddy', header: 'via', text: /caddy/i },
  { name: 'nginx', header: 'server', text: /^(?:nginx|openresty)/i },
  { name: 'apache', header: 'server', text: /^apache/i },
]
