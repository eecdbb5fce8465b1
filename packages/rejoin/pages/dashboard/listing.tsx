import type { ReactNode } from 'react'
import { time } from './format.ts'
import { Rows } from './rows.tsx'

/** A table of a listing of the admin API, with a field that filters its rows. */
export function Listing({ id, title, at, filter, label, headings, more, children }: ListingProps) {
  return (
    <section className="card" aria-labelledby={id}>
      <div className="title">
        <h2 id={id}>
          {title} {at !== null && <small>at {time(at)}</small>}
        </h2>
        <input
          aria-label={filter.label}
          placeholder={filter.placeholder}
          value={filter.value}
          onChange={({ target }) => filter.change(target.value)}
        />
      </div>
      <Rows label={label} headings={headings}>
        {children}
      </Rows>
      <p className="more">{more}</p>
    </section>
  )
}

interface ListingProps {
  readonly id: string
  readonly title: string
  /** When the rows were loaded. They are some seconds older than the figures above them. */
  readonly at: number | null
  readonly filter: {
    readonly label: string
    readonly placeholder: string
    readonly value: string
    change(value: string): void
  }
  /** The name of the table for screen readers. */
  readonly label: string
  readonly headings: readonly string[]
  /** A note under the table: that there are more rows, or why there are none. */
  readonly more: string
  readonly children: ReactNode
}
