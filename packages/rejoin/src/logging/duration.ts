const units: readonly { readonly ms: number; readonly short: string; readonly name: string }[] = [
  { ms: 86_400_000, short: 'd', name: 'day' },
  { ms: 3_600_000, short: 'h', name: 'hour' },
  { ms: 60_000, short: 'min', name: 'minute' },
  { ms: 1000, short: 's', name: 'second' },
  { ms: 1, short: 'ms', name: 'millisecond' },
]

/** A time as a person would say it: "350 ms", "1.2 s", "90 min", "2 d". */
export function durationWords(ms: number): string {
  if (ms >= 1000 && ms < 10_000) return `${Number((ms / 1000).toFixed(1))} s`
  // A unit is used from two of it on: "90 min" is more exact than "2 h".
  const unit = units.find((each) => ms >= 2 * each.ms) ?? { ms: 1, short: 'ms' }
  return `${Math.round(ms / unit.ms)} ${unit.short}`
}

/** A time in full and exactly: "5 minutes", "90 seconds". */
export function exactDuration(ms: number): string {
  const unit = units.find((each) => ms % each.ms === 0) ?? { ms: 1, name: 'millisecond' }
  const count = ms / unit.ms
  return `${count.toLocaleString('en')} ${unit.name}${count === 1 ? '' : 's'}`
}
