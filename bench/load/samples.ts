/** Latencies in microseconds, collected without making garbage while a measurement runs. */
export interface Samples {
  add(micros: number): void
  /** Forgets what was collected. */
  clear(): void
  summary(): LatencySummary
}

export interface LatencySummary {
  readonly samples: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

export function createSamples(): Samples {
  let values = new Float64Array(1 << 16)
  let count = 0
  return {
    add(micros) {
      if (count === values.length) {
        const larger = new Float64Array(values.length * 2)
        larger.set(values)
        values = larger
      }
      values[count] = micros
      count += 1
    },
    clear() {
      count = 0
    },
    summary() {
      const sorted = values.subarray(0, count).toSorted()
      const at = (share: number) => (sorted[Math.min(count - 1, Math.floor(share * count))] ?? Number.NaN) / 1000
      return { samples: count, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
    },
  }
}
