import { useState } from 'react'
import { durationWords } from '../../src/logging/duration.ts'
import type { Admin } from './admin.ts'
import type { Question } from './confirm.tsx'
import { bytes, count } from './format.ts'
import { Listing } from './listing.tsx'
import { actions } from './rows.tsx'
import { useListing } from './use-listing.ts'

interface Connection {
  readonly connection: string
  readonly channels: readonly string[]
  readonly ip: string | null
  readonly userAgent: string | null
  readonly subject: string | null
  readonly mode: string
  readonly full: boolean
  readonly pending: number
  readonly since: number
}

export function Connections({ admin, ask }: { admin: Admin; ask(question: Question): void }) {
  const [channel, setChannel] = useState('')
  const path = `/admin/connections?limit=20${channel ? `&channel=${encodeURIComponent(channel)}` : ''}`
  const { answer, at, reload } = useListing<Page>(admin, path)

  function disconnect(connection: string): void {
    ask({
      title: `Disconnect ${connection}?`,
      consequence:
        'Its stream ends with close, reason admin. It comes back and misses nothing, unless its rights are gone.',
      answer: 'Disconnect',
      async act() {
        await admin.post('/admin/disconnect', { connection })
        reload()
      },
    })
  }

  return (
    <Listing
      id="connections"
      title="Connections"
      at={at}
      filter={{
        label: 'Connections of the channel',
        placeholder: 'of the channel…',
        value: channel,
        change: setChannel,
      }}
      label="Who is connected"
      headings={['reader', 'channels', 'state', 'waits', 'for', actions]}
      more={moreOf(answer, channel)}
    >
      {answer?.connections.map((each) => (
        <tr key={each.connection}>
          <td>
            {each.connection}
            <small> {[each.subject, each.ip].filter(Boolean).join(' · ')}</small>
          </td>
          <td className="name" title={each.channels.join(', ')}>
            {each.channels.join(', ')}
          </td>
          <td>{each.full ? 'slow' : each.mode}</td>
          <td data-label="waits">{bytes(each.pending)}</td>
          <td data-label="for">{durationWords(Math.max(0, Date.now() - each.since))}</td>
          <td>
            <button type="button" onClick={() => disconnect(each.connection)}>
              Disconnect<span className="unseen"> {each.connection}</span>
            </button>
          </td>
        </tr>
      ))}
    </Listing>
  )
}

interface Page {
  readonly connections: readonly Connection[]
  readonly total: number
}

function moreOf(page: Page | null, channel: string): string {
  if (!page) return 'Loading…'
  if (page.total === 0) return channel ? 'Nobody reads this channel.' : 'Nobody is connected.'
  const shown = page.connections.length
  return shown < page.total ? `The oldest ${shown} of ${count(page.total)} are listed.` : ''
}
