import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react'

/** A table that scrolls in its own box, also by the keyboard, and says how many rows are below the edge. */
export function Rows({ label, headings, isShort = false, children }: RowsProps) {
  const { box, below, look } = useRowsBelow()
  return (
    <>
      <section
        className={isShort ? 'rows short' : 'rows'}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
        tabIndex={0}
        aria-label={label}
        data-below={below || undefined}
        ref={box}
        onScroll={look}
      >
        <table>
          {headings && (
            <thead>
              <tr>
                {headings.map((heading) => (
                  <th key={heading}>{heading === actions ? <span className="unseen">{heading}</span> : heading}</th>
                ))}
              </tr>
            </thead>
          )}
          <tbody>{children}</tbody>
        </table>
      </section>
      {/* Not for screen readers, which read the whole table. */}
      <p className="below" aria-hidden="true">
        {below > 0 && `↓ ${below} more`}
      </p>
    </>
  )
}

/** Many systems show a scrollbar only while somebody scrolls, and rows are never cut at the edge: nothing else tells of more. */
function useRowsBelow() {
  const box = useRef<HTMLElement>(null)
  const [below, setBelow] = useState(0)
  const look = useCallback(() => {
    if (!box.current) return
    const edge = box.current.getBoundingClientRect().top + box.current.clientHeight
    const rows = [...box.current.querySelectorAll('tbody tr')]
    setBelow(rows.filter((row) => row.getBoundingClientRect().bottom > edge + 2).length)
  }, [])
  // Rows come and go with every render, and the width of the window changes their height.
  useEffect(look)
  useEffect(() => {
    window.addEventListener('resize', look)
    return () => window.removeEventListener('resize', look)
  }, [look])
  return { box, below, look }
}

/** The heading of a column of buttons. It is for screen readers only. */
export const actions = 'actions'

interface RowsProps {
  /** The name of the table for screen readers. */
  readonly label: string
  readonly headings?: readonly string[]
  readonly isShort?: boolean
  readonly children: ReactNode
}
