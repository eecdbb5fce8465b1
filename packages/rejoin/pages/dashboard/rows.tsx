import type { ReactNode } from 'react'

/** A table that scrolls in its own box, also by the keyboard. */
export function Rows({ label, headings, isShort = false, children }: RowsProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
    <section className={isShort ? 'rows short' : 'rows'} tabIndex={0} aria-label={label}>
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
  )
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
