import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import { time } from './format.ts'

export interface Series {
  readonly label: string
  /** A custom property of the style sheet, so that it follows light and dark. */
  readonly color: string
  readonly values: readonly (number | null)[]
}

/** Minutes of seconds on a canvas. Its figures are in the tiles as text, for those who do not see it. */
export function Chart({ title, times, series, show }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(null)
  const latest = useRef(show)
  latest.current = show
  const data = [times, ...series.map(({ values }) => values)] as UPlot.AlignedData
  const names = series.map(({ label, color }) => `${label} ${color}`).join()

  // Made anew when its lines are other lines; their figures are set below.
  useEffect(() => {
    const element = place.current
    if (!element) return
    const style = getComputedStyle(document.documentElement)
    const ink = style.getPropertyValue('--soft')
    const grid = { stroke: style.getPropertyValue('--edge'), width: 1 }
    const axis: UPlot.Axis = { stroke: ink, grid, ticks: { show: false }, font: '11px system-ui' }
    const made = new UPlot(
      {
        ...{ width: element.clientWidth, height, legend: { show: false }, cursor: { show: false } },
        scales: { y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] } },
        axes: [
          { ...axis, size: 28, space: 70, values: (_plot, values) => values.map((value) => time(1000 * value)) },
          { ...axis, size: 54, incrs, values: (_plot, values) => values.map((value) => latest.current(value)) },
        ],
        series: [{}, ...series.map(({ color }) => ({ stroke: style.getPropertyValue(color), width: 2, points }))],
      },
      data,
      element,
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [names])

  useEffect(() => plot.current?.setData(data))

  return (
    <section className="card chart">
      <h2>
        {title}
        {series.length > 1 &&
          series.map(({ label, color }) => (
            <small key={label}>
              <i style={{ background: `var(${color})` }} /> {label}
            </small>
          ))}
      </h2>
      <div ref={place} className="plot" aria-hidden="true" />
    </section>
  )
}

const height = 160
const points = { show: false }
// What is counted comes in whole numbers.
const incrs = [1, 2, 5]
  .flatMap((step) => Array.from({ length: 10 }, (_, power) => step * 10 ** power))
  .sort((a, b) => a - b)

interface ChartProps {
  readonly title: string
  /** In seconds since 1970. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** How a value stands at the axis. */
  show(value: number): string
}
