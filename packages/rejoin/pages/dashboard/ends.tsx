import { durationWords } from '../../src/logging/duration.ts'
import type { EndedStream, SlowReader } from '../../src/monitoring/figures.ts'
import { bytes, time } from './format.ts'
import { Rows } from './rows.tsx'

/** The readers that are slow now, and the streams that have ended, with the reason. */
export function Ends({ closes, slowest }: { closes: readonly EndedStream[]; slowest: readonly SlowReader[] }) {
  return (
    <section className="card" aria-labelledby="ends">
      <h2 id="ends">Slow readers</h2>
      <ul className="slow">
        {slowest.map(({ connection, channels, ip, pending }) => (
          <li key={connection}>
            <b>{bytes(pending)}</b> {connection} <small>{[...channels, ip].filter(Boolean).join(' · ')}</small>
          </li>
        ))}
        {slowest.length === 0 && <li>All readers keep up.</li>}
      </ul>
      <h3>Latest closes</h3>
      <Rows label="Latest closes" isShort>
        {closes.map(({ at, connection, channels, reason, durationMs }) => (
          <tr key={`${connection} ${at}`}>
            <td>{time(at)}</td>
            <td>{reason}</td>
            <td className="name" title={channels.join(', ')}>
              {channels.join(', ')}
            </td>
            <td>after {durationWords(durationMs)}</td>
          </tr>
        ))}
        {closes.length === 0 && (
          <tr className="none">
            <td>No stream has ended.</td>
          </tr>
        )}
      </Rows>
    </section>
  )
}
