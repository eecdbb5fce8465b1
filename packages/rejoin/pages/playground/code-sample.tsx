import { useState } from 'react'

/** All the code that an application needs, ready to copy. */
export function CodeSample({ channel }: { channel: string }) {
  const [isCopied, setCopied] = useState(false)
  const code = sampleFor(channel)

  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(code)
      setCopied(true)
      setTimeout(() => setCopied(false), 2000)
    } catch {
      // The browser allows no copy here. The text can still be selected.
    }
  }

  return (
    <section className="code" aria-labelledby="code-name">
      <div className="title">
        <h2 id="code-name">Six lines in your page</h2>
        <button type="button" onClick={() => void copy()}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </div>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
        tabIndex={0}
      >
        <code>{code}</code>
      </pre>
    </section>
  )
}

function sampleFor(channel: string): string {
  return [
    "import { connect } from '@rejoin/client'",
    `const stream = connect('${location.origin}/events/${channel}')`,
    "stream.on('number', ({ id, data }) => console.log(id, data))",
    "stream.onSync(({ reason, snapshot }) => console.log('load it again', reason, snapshot))",
    'stream.onState(({ state, nextRetryAt }) => console.log(state, nextRetryAt))',
    "stream.onInvalid(({ error }) => console.error('not what was expected', error))",
  ].join('\n')
}
