import { durationWords } from '../../src/logging/duration.ts'
import type { Figures } from '../../src/monitoring/figures.ts'
import { earlier, gapAlert, gapRate, ratesOf, returnsSince } from './figures.ts'
import { bytes, count, percent, rate } from './format.ts'

/** The most important figures of a hub, for an operator at a glance. */
export function Tiles({ history, now }: { history: readonly Figures[]; now: Figures }) {
  const recent = history.slice(-2)
  const returns = returnsSince(now, earlier(history) ?? now)
  const missed = gapRate(returns)
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
        more={`${count(returns.lost)} of ${count(returns.all)} returns; alert at ${percent(gapAlert)}`}
        tone={missed === null ? undefined : missed > gapAlert ? 'bad' : 'good'}
      />
      <Tile
        name="Slow readers"
        value={count(slow)}
        more={`${bytes(now.pendingBytes)} waiting`}
        tone={slow > 0 ? 'warn' : undefined}
      />
      {now.budget && <Budget {...now.budget} />}
      <Tile name="Retry" value={durationWords(now.retryMs)} more="told to readers" />
    </dl>
  )
}

/** The share of the log's budget that is used. Beyond the budget the oldest events go. */
function Budget({ usedBytes, maxBytes }: NonNullable<Figures['budget']>) {
  const share = usedBytes / maxBytes
  const tone = share >= 0.99 ? 'bad' : share >= 0.8 ? 'warn' : undefined
  return <Tile name="Log" value={percent(share)} more={`${bytes(usedBytes)} of ${bytes(maxBytes)}`} tone={tone} />
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
