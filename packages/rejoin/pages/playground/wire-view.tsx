import { useLayoutEffect, useRef } from 'react'
import { useStore } from '../shared/store.ts'
import type { Wire } from './wire.ts'

export function WireView({ wire }: { wire: Wire }) {
  const lines = useStore(wire)
  const pane = useRef<HTMLElement>(null)
  const isFollowing = useRef(true)
  const held = useRef({ key: 0, until: 0 })

  // Follows new lines, unless the user has scrolled up. A return stays in view for 8 s: it is what the user wants to see, and the
  // next numbers would push it away.
  useLayoutEffect(() => {
    const element = pane.current
    const last = lines.findLast(({ kind }) => kind === 'cursor')
    if (!element) return
    if (last && last.key > held.current.key) held.current = { key: last.key, until: performance.now() + holdMs }
    if (performance.now() < held.current.until) {
      const line = element.querySelector<HTMLElement>(`[data-key="${held.current.key}"]`)
      if (line) element.scrollTop = line.offsetTop - linesAbove * line.offsetHeight
    } else if (isFollowing.current) {
      element.scrollTop = element.scrollHeight
    }
  }, [lines])

  const release = () => {
    held.current.until = 0
  }

  return (
    <div className="wire">
      <h2 id="wire-name">On the wire</h2>
      <section
        ref={pane}
        className="pane"
        aria-labelledby="wire-name"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
        tabIndex={0}
        onWheel={release}
        onTouchMove={release}
        onKeyDown={release}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          if (performance.now() < held.current.until) return
          isFollowing.current = scrollHeight - scrollTop - clientHeight < 24
        }}
      >
        {lines.map(({ key, kind, text }) => (
          <div key={key} data-key={kind === 'cursor' ? key : undefined} data-line={kind}>
            {text || '\u00a0'}
          </div>
        ))}
      </section>
    </div>
  )
}

const holdMs = 8000
// Room for the note of the lost connection and the first lines of the request.
const linesAbove = 4
