import type { WindowOptions } from '@rejoin/hub'
import { exactDuration } from './duration.ts'

/** A window as a person would say it: "the last 1,000 events or 5 minutes of each channel". */
export function windowWords({ maxEvents, maxAgeMs, maxBytes }: WindowOptions): string {
  const bounds: string[] = []
  if (isBound(maxEvents)) bounds.push(`${maxEvents.toLocaleString('en')} ${maxEvents === 1 ? 'event' : 'events'}`)
  if (isBound(maxAgeMs)) bounds.push(exactDuration(maxAgeMs))
  if (isBound(maxBytes)) bounds.push(size(maxBytes))
  return bounds.length === 0 ? 'everything' : `the last ${either.format(bounds)} of each channel`
}

const either = new Intl.ListFormat('en-GB', { type: 'disjunction' })

function isBound(value: number | undefined): value is number {
  return value !== undefined && Number.isFinite(value)
}

function size(bytes: number): string {
  const [unitBytes, unit] = sizes.find(([unitBytes]) => bytes % unitBytes === 0) ?? [1, 'bytes']
  return `${(bytes / unitBytes).toLocaleString('en')} ${unit}`
}

const sizes: [number, string][] = [
  [1024 ** 3, 'GiB'],
  [1024 ** 2, 'MiB'],
  [1024, 'KiB'],
]
