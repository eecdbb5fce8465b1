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

export function time(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB')
}
