import type { Faults, TimesSummary } from '@rejoin/storm'
import { durationWords } from '../../logging/duration.ts'

/** The words that the view of a storm and its summary share. */
export function faultWords({ lost, doubled, disordered, foreign, cursorless }: Faults): string {
  const arrivals = `${grouped(lost)} lost, ${grouped(doubled)} doubled, ${grouped(disordered)} out of order`
  return `${arrivals}, ${grouped(foreign)} foreign, ${grouped(cursorless)} cursorless`
}

export function timesWords(times: TimesSummary | undefined): string {
  if (!times) return '-'
  return `${msWords(times.p50)} (p50), ${msWords(times.p99)} (p99), ${msWords(times.max)} (max)`
}

export function grouped(number: number): string {
  return number.toLocaleString('en')
}

export function percent(part: number): string {
  return `${Math.round(part * 100)} %`
}

/** A time in words. Below 10 ms it has one decimal digit. */
function msWords(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : durationWords(Math.round(ms))
}
