import { memo } from 'react'
import type { Figures } from '../../src/monitoring/figures.ts'
import { Chart } from './chart.tsx'
import { earlier, gapAlert, gapRate, ratesOf, returnsSince } from './figures.ts'

export const Charts = memo(({ history }: { history: readonly Figures[] }) => {
  const times = history.map(({ at }) => at / 1000)
  const gaps = history.map((now, index) => 100 * (gapRate(returnsSince(now, earlier(history, index) ?? now)) ?? 0))
  return (
    <div className="charts">
      <Chart
        title="Connections"
        times={times}
        show={short}
        series={[
          {
            label: 'all',
            color: '--live-ink',
            values: history.map(({ readers: { live, replaying } }) => live + replaying),
          },
        ]}
      />
      <Chart
        title="Events/s"
        times={times}
        show={short}
        series={[{ label: 'published', color: '--replayed', values: ratesOf(history, ({ totals }) => totals.events) }]}
      />
      <Chart
        title="Deliveries/s"
        times={times}
        show={short}
        series={[{ label: 'delivered', color: '--told', values: ratesOf(history, ({ totals }) => totals.deliveries) }]}
      />
      <Chart
        title="Gap rate"
        times={times}
        show={(value) => `${value} %`}
        series={[
          { label: '5 minutes', color: '--waiting', values: gaps },
          { label: 'alert', color: '--missing', values: history.map(() => 100 * gapAlert) },
        ]}
      />
    </div>
  )
})

const compact = new Intl.NumberFormat('en', { notation: 'compact' })

function short(value: number): string {
  return compact.format(value)
}
