import type { ReactNode } from 'react'
import { Rows } from './rows.tsx'

/** A table of what the admin API lists, with a field that says which of them are meant. */
export function Listing({ id, title, filter, label, headings, more, children }: ListingProps) {
  return (
    <section className="card" aria-labelledby={id}>
      <div className="title">
        <h2 id={id}>{title}</h2>
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
  readonly filter: {
    readonly label: string
    readonly placeholder: string
    readonly value: string
    change(value: string): void
  }
  /** What a screen reader calls the table. */
  readonly label: string
  readonly headings: readonly string[]
  /** What is not shown, or why nothing is. */
  readonly more: string
  readonly children: ReactNode
}
