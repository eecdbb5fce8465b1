import { useStore } from '../shared/store.ts'
import { useNow } from '../shared/use-now.ts'
import type { Counts, Lane, Line } from './lane.ts'

export function LaneView({ id, name, hint, lane }: { id: string; name: string; hint: string; lane: Lane }) {
  const { first, kinds, counts, line } = useStore(lane)
  return (
    <section className="lane" id={id} aria-labelledby={`${id}-name`}>
      <div className="title">
        <h2 id={`${id}-name`}>
          {name} <small>{hint}</small>
        </h2>
        <Pill line={line} />
      </div>
      <div className="squares" aria-hidden="true">
        {kinds.map((kind, index) => (
          <i key={first + index} data-kind={kind} className={first + index > 999 ? 'long' : undefined}>
            {kind && first + index}
          </i>
        ))}
      </div>
      <dl className="counters">
        {counters.map(([count, label]) => (
          <div key={count}>
            <dt>{label}</dt>
            <dd data-count={count} data-tone={toneOf(count, counts)}>
              {counts[count].toLocaleString('en')}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

const counters: [keyof Counts, string][] = [
  ['published', 'published'],
  ['received', 'received'],
  ['replayed', 'replayed'],
  ['duplicates', 'duplicates dropped'],
  ['announced', 'gone, told'],
  ['missing', 'missing'],
]

function toneOf(count: keyof Counts, { missing, announced, replayed }: Counts): string | undefined {
  if (count === 'announced' && announced > 0) return 'told'
  if (count !== 'missing') return undefined
  if (missing > 0) return 'bad'
  return replayed > 0 ? 'good' : undefined
}

function Pill({ line: { state, text, retryAt } }: { line: Line }) {
  const now = useNow(100, retryAt !== null)
  const isCounting = retryAt !== null
  const leftMs = isCounting ? Math.max(0, retryAt - now) : 0
  return (
    <p className="state" data-state={state}>
      {isCounting ? `back in ${(leftMs / 1000).toFixed(1)} s` : text}
    </p>
  )
}
