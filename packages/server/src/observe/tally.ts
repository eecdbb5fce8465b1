/**
 * Counts values by how large they are, for a histogram of Prometheus. prom-client's own finds its only series by hashing no
 * labels, each time, for 1 µs: with one in every publish that is more than all else that is counted there.
 *
 * @param bounds - the largest value of each bucket, ascending
 */
export function createTally(bounds: readonly number[]): Tally {
  const counts = new Float64Array(bounds.length + 1)
  let sum = 0
  return {
    add(value) {
      let bucket = 0
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
      counts[bucket] = (counts[bucket] as number) + 1
      sum += value
    },
    read(name) {
      let count = 0
      const buckets = [...bounds, '+Inf'].map((le, bucket) => {
        count += counts[bucket] as number
        return { metricName: `${name}_bucket`, labels: { le }, value: count }
      })
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: {}, value: sum },
        { metricName: `${name}_count`, labels: {}, value: count },
      ]
    },
  }
}

export interface Tally {
  add(value: number): void
  /** The series of the metric of this name. */
  read(name: string): TallySeries[]
}

export interface TallySeries {
  readonly metricName: string
  readonly labels: { readonly le?: number | string }
  readonly value: number
}
