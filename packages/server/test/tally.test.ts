import { Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createTally } from '../src/observe/tally.ts'

test('a tally has the series that prom-client makes of the same values', async () => {
  const buckets = [0.001, 0.5, 2]
  const values = [0, 0.001, 0.0011, 0.5, 1, 2, 2.5, 1e9]
  const registry = new Registry()
  const histogram = new Histogram({ name: 'seconds', help: 'Seconds.', buckets, registers: [registry] })
  const tally = createTally(buckets)
  for (const value of values) {
    histogram.observe(value)
    tally.add(value)
  }
  const [expected] = await registry.getMetricsAsJSON()
  expect(tally.read('seconds')).toEqual(
    (expected?.values ?? []).map(({ metricName, labels, value }: Record<string, unknown>) => ({
      metricName,
      labels,
      value,
    })),
  )
})
