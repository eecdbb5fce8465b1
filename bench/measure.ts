import { cpus } from 'node:os'

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

/** What a result was measured on; without it a figure says nothing. */
export function machine(): string {
  return `${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}, ${process.platform}, node ${process.version}`
}

/** One line per row under the names of its fields. */
export function printTable(rows: readonly Readonly<Record<string, string | number | boolean>>[]): void {
  const names = Object.keys(rows[0] ?? {})
  const lines = [names, ...rows.map((row) => names.map((name) => shown(row[name])))]
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  for (const line of lines)
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
}

function shown(value: string | number | boolean | undefined): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return String(value ?? '')
}
