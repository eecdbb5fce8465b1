import { expect, test } from 'vitest'
import { proxyOf } from '../src/proxy-name.ts'
import { remedyFor } from '../src/remedies.ts'
import { checkNames } from '../src/report.ts'

test('a proxy is known by what it puts into its answers', () => {
  const named = (headers: Record<string, string>) => proxyOf({ get: (name) => headers[name] })
  expect(named({ server: 'nginx/1.22.1' })).toEqual({ name: 'nginx', text: 'nginx/1.22.1' })
  expect(named({ server: 'nginx/1.22.1', 'x-varnish': '2', via: '1.1 varnish (Varnish/7.1)' })?.name).toBe('varnish')
  expect(named({ server: 'cloudflare', 'cf-ray': 'x' })).toEqual({ name: 'cloudflare', text: 'cloudflare' })
  expect(named({})).toBeUndefined()
})

test('each check has lines to change for each proxy of Debian, and names no other where the proxy is known', () => {
  const usual = ['nginx', 'haproxy', 'varnish', 'caddy', 'apache'] as const
  for (const name of checkNames) {
    for (const proxy of usual) {
      const { changes, cost, culprit } = remedyFor(name, { proxy })
      expect(changes, `${name} ${proxy}`).toHaveLength(1)
      expect(changes[0]?.lines.length, `${name} ${proxy}`).toBeGreaterThan(0)
      expect([cost, culprit].join('').length).toBeGreaterThan(20)
    }
    expect(remedyFor(name, {}).changes).toHaveLength(usual.length)
  }
})
