import type { Figures, Rejection } from '../../src/monitoring/figures.ts'
import { earlier } from './figures.ts'
import { count, time } from './format.ts'
import { Rows } from './rows.tsx'

/** The rejected requests, and why they were rejected. */
export function Rejections({ history, now, latest }: RejectionsProps) {
  const then = earlier(history) ?? now
  const kinds = Object.entries(now.rejects).sort(([, one], [, other]) => other - one)
  return (
    <section className="card" aria-labelledby="rejections">
      <h2 id="rejections">
        Rejected <small>5 minutes, and since the start</small>
      </h2>
      <table>
        <thead>
          <tr>
            <th>why</th>
            <th>5 minutes</th>
            <th>all</th>
          </tr>
        </thead>
        <tbody>
          {kinds.map(([kind, all]) => (
            <tr key={kind} data-rejected={kind}>
              <td className="why">{words[kind] ?? kind}</td>
              <td>{count(all - (then.rejects[kind] ?? 0))}</td>
              <td>{count(all)}</td>
            </tr>
          ))}
          {kinds.length === 0 && (
            <tr>
              <td colSpan={3}>Nobody was rejected.</td>
            </tr>
          )}
        </tbody>
      </table>
      <h3>Latest</h3>
      <Rows label="Latest rejections" isShort>
        {latest.map(({ at, status, reason, action, channels, ip, origin }, index) => (
          <tr key={`${at} ${latest.length - index}`}>
            <td>{time(at)}</td>
            <td>
              {status} {reason}
            </td>
            <td>{action}</td>
            <td className="name">{[...channels, origin, ip].filter(Boolean).join(' · ')}</td>
          </tr>
        ))}
        {latest.length === 0 && (
          <tr className="none">
            <td>Nobody was rejected since this page was opened.</td>
          </tr>
        )}
      </Rows>
    </section>
  )
}

interface RejectionsProps {
  readonly history: readonly Figures[]
  readonly now: Figures
  /** Newest first. */
  readonly latest: readonly Rejection[]
}

const words: Readonly<Record<string, string>> = {
  unauthorized: '401: no token, or a bad one',
  forbidden: '403: the token gives no right to it',
  origin: '403: a page of an origin that is not listed',
  host: '403: addressed by another name',
  preflight: '403: a preflight of a page that is not listed',
  ticket: '401: no ticket without a good token',
  maintenance: 'maintenance',
  drain: 'the hub drains',
  connections: 'too many connections',
  'per-ip': 'too many connections of one address',
  'per-subject': 'too many connections of one subject',
  'too-rapid': 'came back too soon',
  'publish-rate': 'published too fast',
  memory: 'no memory left for readers',
}
