// A longer cell does not widen its column: one long value would push the other columns off the screen.
const maxWidth = 40

/** Aligns rows in columns. The columns in `numeric` are aligned to the right. */
export function table(rows: readonly (readonly string[])[], numeric: readonly number[] = []): string[] {
  const widths = (rows[0] ?? []).map((_, column) => widest(rows.map((row) => row[column] ?? '')))
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0
        return numeric.includes(column) ? cell.padStart(width) : cell.padEnd(width)
      })
      .join('  ')
      .trimEnd(),
  )
}

function widest(cells: readonly string[]): number {
  return Math.max(0, ...cells.map(({ length }) => length).filter((length) => length <= maxWidth))
}
