export function count(value: number): string {
  return Math.round(value).toLocaleString('en')
}

export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  return value < 10 ? value.toFixed(1) : count(value)
}

export function percent(value: number | null): string {
  return value === null ? '–' : `${(100 * value).toFixed(1)} %`
}

export function bytes(value: number): string {
  if (value < 1024) return `${count(value)} B`
  const units = ['KiB', 'MiB', 'GiB', 'TiB']
  const power = Math.min(units.length, Math.floor(Math.log2(value) / 10))
  return `${(value / 1024 ** power).toFixed(1)} ${units[power - 1]}`
}

/** In the largest unit that leaves a number of at least two, for people. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const units: [string, number][] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
  ]
  const [unit, length] = units.find(([, of]) => ms >= 2 * of) ?? ['s', 1000]
  return `${Math.round(ms / length)} ${unit}`
}

export function time(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB')
}
