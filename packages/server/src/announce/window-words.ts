import type { WindowOptions } from '@rejoin/hub'

/** A window as a person would say it: "the last 1,000 events or 5 minutes of each channel". */
export function windowWords({ maxEvents, maxAgeMs, maxBytes }: WindowOptions): string {
  const bounds: string[] = []
  if (isBound(maxEvents)) bounds.push(counted(maxEvents, 'event'))
  if (isBound(maxAgeMs)) bounds.push(duration(maxAgeMs))
  if (isBound(maxBytes)) bounds.push(size(maxBytes))
  return bounds.length === 0 ? 'everything' : `the last ${either.format(bounds)} of each channel`
}

const either = new Intl.ListFormat('en-GB', { type: 'disjunction' })

function isBound(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value)
}

function duration(ms: number): string {
  const [unitMs, unit] = durations.find(([unitMs]) => ms % unitMs === 0) ?? [1, 'millisecond']
  return counted(ms / unitMs, unit)
}

const durations: [number, string][] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1000, 'second'],
]

function size(bytes: number): string {
  const [unitBytes, unit] = sizes.find(([unitBytes]) => bytes % unitBytes === 0) ?? [1, 'bytes']
  return `${(bytes / unitBytes).toLocaleString('en')} ${unit}`
}

const sizes: [number, string][] = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
  [1024, 'KiB'],
]

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
