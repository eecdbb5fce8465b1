import { useState } from 'react'
import { durationWords } from '../../src/logging/duration.ts'
import type { Admin } from './admin.ts'
import type { Question } from './confirm.tsx'
import { bytes, count } from './format.ts'
import { Listing } from './listing.tsx'
import { actions } from './rows.tsx'
import { useListing } from './use-listing.ts'

interface Channel {
  readonly channel: string
  readonly events: number
  readonly bytes: number
  readonly oldestAt: number | null
  readonly newestAt: number | null
  readonly ended: boolean
  readonly limits: { readonly maxEvents: number; readonly maxAgeMs: number; readonly maxBytes: number }
}

export function Channels({ admin, ask }: { admin: Admin; ask(question: Question): void }) {
  const [prefix, setPrefix] = useState('')
  const path = `/admin/channels?limit=20&prefix=${encodeURIComponent(prefix)}`
  const { answer, at } = useListing<Page>(admin, path)

  function invalidate(channel: string): void {
    ask({
      title: `Invalidate ${channel}?`,
      consequence:
        'All readers of this channel, also those that are away, get sync-required and have to load their state again.',
      answer: 'Invalidate',
      act: () => admin.post('/admin/invalidate', { channel }),
    })
  }

  return (
    <Listing
      id="channels"
      title="Channels"
      at={at}
      filter={{ label: 'Channels that begin with', placeholder: 'begin with…', value: prefix, change: setPrefix }}
      label="Channels and what they hold"
      headings={['channel', 'events', 'size', 'a client may be away', actions]}
      more={moreOf(answer, prefix)}
    >
      {answer?.channels.map((channel) => (
        <tr key={channel.channel}>
          <td className="name" title={channel.channel}>
            {channel.channel}
            {channel.ended && <small> ended</small>}
          </td>
          <td data-label="events">{count(channel.events)}</td>
          <td>{bytes(channel.bytes)}</td>
          <td data-label="may be away">{channel.ended ? '–' : durationWords(bridged(channel))}</td>
          <td>
            <button type="button" onClick={() => invalidate(channel.channel)}>
              Invalidate<span className="unseen"> {channel.channel}</span>
            </button>
          </td>
        </tr>
      ))}
    </Listing>
  )
}

interface Page {
  readonly channels: readonly Channel[]
  readonly next: string | null
}

function moreOf(page: Page | null, prefix: string): string {
  if (!page) return 'Loading…'
  if (page.channels.length === 0) return prefix ? 'No channel begins like that.' : 'There is no channel yet.'
  return page.next === null ? '' : 'There are more. Type the beginning of a name.'
}

/**
 * How long a client may be away and still get every event: the time that the window covers when it is full. For a window that is
 * not full, this time is estimated from the rate of the events that it holds.
 */
function bridged({ events, bytes: size, oldestAt, newestAt, limits }: Channel): number {
  if (oldestAt === null || newestAt === null || events < 2) return limits.maxAgeMs
  const fullness = Math.max(events / limits.maxEvents, size / limits.maxBytes)
  return Math.min(limits.maxAgeMs, (newestAt - oldestAt) / Math.min(1, fullness))
}
