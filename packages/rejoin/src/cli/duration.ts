import { RejoinError } from '@rejoin/protocol'

/** Reads a time such as `30s`, `15m`, `2h` or `7d`, and gives milliseconds. */
export function readDuration(text: string, option: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const ms = Number(count) * (unitMs[unit] ?? 0)
  if (ms > 0) return ms
  throw new RejoinError(`${option} is ${JSON.stringify(text)}. Give a time such as 30s, 15m, 2h or 7d.`, {
    code: 'invalid-option',
  })
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
