import type { Figures } from '../../src/observe/figures.ts'
import { earlier, gapAlert, gapRate, ratesOf } from './figures.ts'
import { bytes, count, duration, percent, rate } from './format.ts'

/** The questions of an operator, and their answers at a glance. */
export function Tiles({ history, now }: { history: readonly Figures[]; now: Figures }) {
  const recent = history.slice(-2)
  const missed = gapRate(now, earlier(history) ?? now)
  const { live, replaying, slow } = now.readers
  return (
    <dl className="tiles">
      <Tile name="Connections" value={count(live + replaying)} more={`${count(replaying)} catching up`} />
      <Tile name="Events/s" value={rate(ratesOf(recent, ({ totals }) => totals.events).at(-1))} more="published" />
      <Tile
        name="Deliveries/s"
        value={rate(ratesOf(recent, ({ totals }) => totals.deliveries).at(-1))}
        more={`${bytes(ratesOf(recent, ({ totals }) => totals.bytes).at(-1) ?? 0)}/s`}
      />
      <Tile
        name="Gap rate"
        value={percent(missed)}
        more={`5 minutes; alert at ${percent(gapAlert)}`}
        tone={missed === null ? undefined : missed > gapAlert ? 'bad' : 'good'}
      />
      <Tile
        name="Slow readers"
        value={count(slow)}
        more={`${bytes(now.pendingBytes)} waiting`}
        tone={slow > 0 ? 'warn' : undefined}
      />
      <Tile name="Retry" value={duration(now.retryMs)} more="told to readers" />
    </dl>
  )
}

function Tile({ name, value, more, tone }: { name: string; value: string; more: string; tone?: string | undefined }) {
  return (
    <div className="card tile">
      <dt>{name}</dt>
      <dd data-figure={name} data-tone={tone}>
        {value}
      </dd>
      <dd className="more">{more}</dd>
    </div>
  )
}
