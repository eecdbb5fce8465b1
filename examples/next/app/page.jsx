'use client'

import { connect } from '@rejoin/client'
import { useEffect, useState } from 'react'

export default function Page() {
  const [count, setCount] = useState(0)
  const [state, setState] = useState('connecting')

  useEffect(() => {
    const stream = connect('/events/cheers')
    stream.on('cheer', () => setCount((before) => before + 1))
    stream.onState((now) => setState(now.state))
    return () => stream.close()
  }, [])

  return (
    <main>
      <button type="button" onClick={() => fetch('/cheer', { method: 'POST' })}>
        Cheer
      </button>
      <p>
        {count} cheers, {state}. Change a file while this is open: the stream comes back, and none is lost.
      </p>
    </main>
  )
}
