import type { Figures } from '../../src/monitoring/figures.ts'
import { earlier, outcomesSince, sizeLabels } from './figures.ts'
import { count } from './format.ts'

/** The outcomes of readers' returns, and how many events they had missed. */
export function Returns({ history, now }: { history: readonly Figures[]; now: Figures }) {
  const then = earlier(history) ?? now
  const outcomes = outcomesSince(now, then)
  const sizes = now.replaySizes.map((size, index) => size - (then.replaySizes[index] ?? 0))
  const most = Math.max(1, ...sizes)
  return (
    <section className="card" aria-labelledby="returns">
      <h2 id="returns">
        Returns <small>5 minutes, and since the start</small>
      </h2>
      <table>
        <thead>
          <tr>
            <th>outcome</th>
            <th>5 minutes</th>
            <th>all</th>
          </tr>
        </thead>
        <tbody>
          {outcomes.map(([outcome, recent]) => (
            <tr key={outcome} data-outcome={outcome}>
              <td>{outcome}</td>
              <td>{count(recent)}</td>
              <td>{count(now.resumes[outcome] ?? 0)}</td>
            </tr>
          ))}
          {outcomes.length === 0 && (
            <tr>
              <td colSpan={3}>Nobody has come back yet.</td>
            </tr>
          )}
        </tbody>
      </table>
      <h3>Events that a return replayed</h3>
      <ul className="sizes">
        {sizes.map((size, index) => (
          <li key={sizeLabels[index]}>
            <span>{sizeLabels[index]}</span>
            <i style={{ transform: `scaleX(${size / most})` }} aria-hidden="true" />
            <b>{count(size)}</b>
          </li>
        ))}
      </ul>
    </section>
  )
}
