import { stripVTControlCharacters } from 'node:util'

// A longer cell does not widen its column: one long value would push the other columns off the screen.
const maxWidth = 40

/** Aligns rows in columns. The columns in `numeric` are aligned to the right. The styles of a cell take no room. */
export function table(rows: readonly (readonly string[])[], numeric: readonly number[] = []): string[] {
  const widths = (rows[0] ?? []).map((_, column) => widest(rows.map((row) => row[column] ?? '')))
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const padding = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell)))
        return numeric.includes(column) ? padding + cell : cell + padding
      })
      .join('  ')
      .trimEnd(),
  )
}

function widest(cells: readonly string[]): number {
  return Math.max(0, ...cells.map(widthOf).filter((width) => width <= maxWidth))
}

function widthOf(cell: string): number {
  return stripVTControlCharacters(cell).length
}
