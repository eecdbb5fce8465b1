import { useNow } from '../shared/use-now.ts'
import type { Session, Trouble } from './session.ts'

/** The buttons that order troubles. While one trouble is under way, the other buttons stay visible and do nothing. */
export function Troubles({ session, trouble, isSlow }: { session: Session; trouble: Trouble | null; isSlow: boolean }) {
  const isBusy = trouble !== null
  return (
    <section className="troubles" aria-label="Trouble for both lines">
      <div className="group">
        {cuts.map(({ ms, label }) => (
          <button
            key={ms}
            type="button"
            className={ms === 5000 ? 'main' : undefined}
            aria-disabled={isBusy}
            onClick={() => session.cut(ms)}
          >
            {label}
            {trouble?.name === 'cut' && trouble.ms === ms && <Left trouble={trouble} />}
          </button>
        ))}
      </div>
      <div className="group">
        <button type="button" aria-disabled={isBusy} onClick={session.stayAway}>
          Stay away too long
          {trouble?.name === 'away' && <Left trouble={trouble} />}
        </button>
        <button type="button" aria-disabled={isBusy} onClick={session.restart}>
          Restart the stream
        </button>
        <button type="button" aria-pressed={isSlow} onClick={() => session.setSlow(!isSlow)}>
          Slow reader
        </button>
      </div>
    </section>
  )
}

const cuts = [
  { ms: 1000, label: 'Cut 1 s' },
  { ms: 5000, label: 'Cut both for 5 s' },
  { ms: 30_000, label: 'Cut 30 s' },
]

/** The time that is left of a cut, as a bar in its button. */
function Left({ trouble: { ms, until } }: { trouble: Trouble }) {
  const now = useNow(100)
  const left = Math.max(0, until - now) / ms
  return <span className="left" style={{ transform: `scaleX(${left})` }} aria-hidden="true" />
}
