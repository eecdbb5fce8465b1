import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { errorCodes } from '@rejoin/protocol'
import { beforeAll, describe, expect, test } from 'vitest'
import { createMetrics, type Metrics } from '../../src/monitoring/metrics.ts'
import { createObservation } from '../../src/observation.ts'

interface Metric {
  name: string
  type: string
  help: string
  labels: string[]
}

let metrics: Metrics
let known: Metric[]

beforeAll(async () => {
  const hub = await createHub({ log: memoryLog() })
  metrics = await createMetrics({
    ...{ hub, version: '1.2.3' },
    readiness: { check: async () => ({ ready: true, checks: {} as never }) },
  })
  const listed = metrics.registry.getMetricsAsArray() as unknown as (Metric & { labelNames: string[] })[]
  known = listed.map(({ name, help, type, labelNames }) => ({ name, help, type, labels: labelNames }))
  return () => hub.close()
})

describe('docs/reference/metrics.md', () => {
  test('has every metric of ours with its type, labels and meaning, and no other', () => {
    const rows = [...page('docs/reference/metrics.md').matchAll(/^\| `(rejoin_\w+)` \| (\w+) \| ?(.*?) ?\| (.+) \|$/gm)]
    const documented = rows.map(([, name, type, labels = '', help]) => {
      return { name, type, help, labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label) }
    })
    const byName = (one: { name?: string | undefined }, other: { name?: string | undefined }) =>
      String(one.name).localeCompare(String(other.name))
    const ours = known.filter(({ name }) => name.startsWith('rejoin_'))
    expect(documented.sort(byName)).toEqual(ours.sort(byName))
  })

  test('has every value that a label takes', async () => {
    const text = await metrics.registry.metrics()
    const table = page('docs/reference/metrics.md').split('## Values of the labels')[1] ?? ''
    const missing = [...text.matchAll(/^rejoin_(\w+)\{(\w+)="([^"]+)"\}/gm)].filter(([, name, label, value]) => {
      if (label === 'le' || (label === 'result' && (errorCodes as readonly string[]).includes(String(value))))
        return false
      const row = table.split('\n').find((line) => line.startsWith(`| \`${label}\` of \`rejoin_${name}\``))
      return !(row ?? table.split('\n').find((line) => line.startsWith(`| \`${label}\``)))?.includes(`\`${value}\``)
    })
    expect(missing.map(([series]) => series)).toEqual([])
  })
})

describe('what deploy/ asks Prometheus for', () => {
  test.each(['deploy/prometheus/rejoin.rules.yml', 'deploy/prometheus/rejoin.test.yml', 'deploy/grafana/rejoin.json'])(
    '%s names only metrics that there are',
    (file) => {
      const suffixes: Record<string, string[]> = { histogram: ['_bucket', '_sum', '_count'] }
      const names = known.flatMap(({ name, type }) => (suffixes[type] ?? ['']).map((suffix) => name + suffix))
      const asked = new Set(page(file).match(/\b(?:rejoin|nodejs|process)_[a-z0-9_]+/g))
      expect(asked.size).toBeGreaterThan(5)
      expect([...asked].filter((name) => !names.includes(name))).toEqual([])
    },
  )

  test.each(['deploy/prometheus/rejoin.rules.yml', 'deploy/grafana/rejoin.json'])(
    '%s selects only by labels that the metric has',
    async (file) => {
      const own = new Map(known.map(({ name, labels }) => [name, labels]))
      const selectors = page(file)
        .replaceAll('\\"', '"')
        .matchAll(/\b(rejoin_[a-z0-9_]+?)(?:_bucket)?\{([^}]*)\}/g)
      for (const [selector, name = '', matchers = ''] of selectors) {
        const labels = [...matchers.matchAll(/(\w+)(?:=~?|!=|!~)"/g)].map(([, label]) => label as string)
        const allowed = ['job', 'instance', ...(own.get(name) ?? [])]
        expect([selector, labels.filter((label) => !allowed.includes(label))]).toEqual([selector, []])
      }
    },
  )

  test('the dashboard is one that Grafana can import: panels side by side, each with a query', () => {
    const { panels, uid, schemaVersion } = JSON.parse(page('deploy/grafana/rejoin.json')) as Dashboard
    expect([uid, schemaVersion]).toEqual(['rejoin', 39])
    const places = panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)
    expect(new Set(places).size).toBe(panels.length)
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    for (const { type, title, targets = [] } of panels) {
      expect([title, targets.length > 0]).toEqual([title, type !== 'row'])
    }
  })

  test('every alert is in the guide', () => {
    const alerts = [...page('deploy/prometheus/rejoin.rules.yml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
    const guide = page('docs/guides/observe.md')
    expect(alerts.length).toBeGreaterThan(9)
    expect(alerts.filter((name) => !guide.includes(`\`${name}\``))).toEqual([])
  })
})

test('the guide names every line that is written about readers, and every check of readiness', async () => {
  const guide = page('docs/guides/observe.md')
  const source = page('packages/rejoin/src/logging/json-lines.ts')
  const events = [...source.matchAll(/event: '(\w+)'/g)].map(([, name]) => name as string)
  const aside = ['server_insecure', 'tls_reloaded', 'tls_reload_failed']
  expect(events.filter((name) => !aside.includes(name) && !guide.includes(`\`${name}\``))).toEqual([])
  expect(Object.keys(await readinessChecks()).filter((name) => !guide.includes(`| \`${name}\` |`))).toEqual([])
})

interface Dashboard {
  uid: string
  schemaVersion: number
  panels: { id: number; type: string; title: string; gridPos: { x: number; y: number }; targets?: unknown[] }[]
}

async function readinessChecks(): Promise<Record<string, string>> {
  const hub = await createHub({ log: memoryLog() })
  const { middleware } = await createObservation({ hub, version: '1' })
  const server = createServer((request, response) => middleware(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/readyz`)
  const { checks } = (await answer.json()) as { checks: Record<string, string> }
  server.close()
  await hub.close()
  return checks
}

function page(file: string): string {
  return readFileSync(new URL(`../../../../${file}`, import.meta.url), 'utf8')
}
