import { useState } from 'react'
import type { Admin } from './admin.ts'
import type { Question } from './confirm.tsx'
import type { WindowLimits } from './figures.ts'
import { bytes, count, duration } from './format.ts'
import { useListing } from './use-listing.ts'

interface Channel {
  readonly channel: string
  readonly events: number
  readonly bytes: number
  readonly oldestAt: number | null
  readonly newestAt: number | null
  readonly ended: boolean
}

export function Channels({
  admin,
  limits,
  ask,
}: {
  admin: Admin
  limits: WindowLimits
  ask(question: Question): void
}) {
  const [prefix, setPrefix] = useState('')
  const path = `/admin/channels?limit=20&prefix=${encodeURIComponent(prefix)}`
  const { answer } = useListing<{ channels: Channel[]; next: string | null }>(admin, path)

  function invalidate(channel: string): void {
    ask({
      title: `Declare ${channel} void?`,
      consequence:
        'Its readers, those that are away included, are told sync-required and have to load their state again.',
      answer: 'Invalidate',
      act: () => admin.post('/admin/invalidate', { channel }),
    })
  }

  return (
    <section className="card" aria-labelledby="channels">
      <div className="title">
        <h2 id="channels">Channels</h2>
        <input
          aria-label="Channels that begin with"
          placeholder="begin with…"
          value={prefix}
          onChange={({ target }) => setPrefix(target.value)}
        />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
      <section className="rows" tabIndex={0} aria-label="Channels and what they hold">
        <table>
          <thead>
            <tr>
              <th>channel</th>
              <th>events</th>
              <th>size</th>
              <th>a client may be away</th>
              <th>
                <span className="unseen">actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {answer?.channels.map((channel) => (
              <tr key={channel.channel}>
                <td className="name">
                  {channel.channel}
                  {channel.ended && <small> ended</small>}
                </td>
                <td>{count(channel.events)}</td>
                <td>{bytes(channel.bytes)}</td>
                <td>{duration(bridged(channel, limits))}</td>
                <td>
                  <button type="button" onClick={() => invalidate(channel.channel)}>
                    Invalidate<span className="unseen"> {channel.channel}</span>
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <p className="more">{moreOf(answer)}</p>
    </section>
  )
}

function moreOf(answer: { channels: Channel[]; next: string | null } | null): string {
  if (!answer) return 'Loading…'
  if (answer.channels.length === 0) return 'No channel begins like that.'
  return answer.next === null ? '' : 'There are more: say how they begin.'
}

/**
 * How long a client may be away and still get everything: the age of the oldest event where the window is full; else the
 * time after which it will be, at the pace of what it holds.
 */
function bridged({ events, bytes: size, oldestAt, newestAt }: Channel, limits: WindowLimits): number {
  if (oldestAt === null || newestAt === null || events < 2) return limits.maxAgeMs
  const fullness = Math.max(events / limits.maxEvents, size / limits.maxBytes)
  return Math.min(limits.maxAgeMs, (newestAt - oldestAt) / Math.min(1, fullness))
}
