'use client'

import { useEventStream } from '@rejoin/client/react'

export function Cheers({ cursor, total: initial }) {
  const { value: total, state } = useEventStream('/events/cheers', {
    from: cursor,
    initial,
    reduce: (_total, { data }) => data.total,
    onSync: () => window.location.reload(),
  })
  return (
    <main>
      <button type="button" onClick={() => fetch('/cheer', { method: 'POST' })}>
        Cheer
      </button>
      <p>
        {total} cheers, {state}
      </p>
    </main>
  )
}
