import { RejoinError } from '@rejoin/protocol'

/** A time as a person would say it: "0.7 s", "3 min", "2 d". */
export function durationWords(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  // Two of the larger unit at least: "90 min" says more than "2 h".
  const [ofUnit, unit] = units.find(([ofUnit]) => ms >= 2 * ofUnit) ?? [1000, 's']
  return `${Math.round(ms / ofUnit)} ${unit}`
}

const units: readonly [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
]

/** Reads `30s`, `15m`, `2h` or `7d`, in ms. */
export function readDuration(text: string, option: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const ms = Number(count) * (unitMs[unit] ?? 0)
  if (ms > 0) return ms
  throw new RejoinError(`${option} is ${JSON.stringify(text)}. Give a time such as 30s, 15m, 2h or 7d.`, {
    code: 'invalid-option',
  })
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
