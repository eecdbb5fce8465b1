import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import { time } from './format.ts'

export interface Series {
  readonly label: string
  /** A custom property of the style sheet, so that the color follows the light and the dark theme. */
  readonly color: string
  readonly values: readonly (number | null)[]
}

/** The last minutes as lines on a canvas. The tiles show the same figures as text, for users who cannot see the canvas. */
export function Chart({ title, times, series, show }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(null)
  const latest = useRef(show)
  latest.current = show
  const data = [times, ...series.map(({ values }) => values)] as UPlot.AlignedData
  const names = series.map(({ label, color }) => `${label} ${color}`).join()

  // The plot is created again when its series change. The second effect sets their values.
  useEffect(() => {
    const element = box.current
    if (!element) return
    const style = getComputedStyle(document.documentElement)
    const ink = style.getPropertyValue('--soft')
    const grid = { stroke: style.getPropertyValue('--edge'), width: 1 }
    const axis: UPlot.Axis = { stroke: ink, grid, ticks: { show: false }, font: '11px system-ui' }
    const made = new UPlot(
      {
        width: element.clientWidth,
        height,
        legend: { show: false },
        cursor: { show: false },
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
      <div ref={box} className="plot" aria-hidden="true" />
    </section>
  )
}

const height = 160
const points = { show: false }
// Steps of the axis: counts are whole numbers.
const incrs = [1, 2, 5]
  .flatMap((step) => Array.from({ length: 10 }, (_, power) => step * 10 ** power))
  .sort((a, b) => a - b)

interface ChartProps {
  readonly title: string
  /** In seconds since 1970. */
  readonly times: readonly number[]
  readonly series: readonly Series[]
  /** The text of a value at the axis. */
  show(value: number): string
}
