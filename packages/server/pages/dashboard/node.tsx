import { type Figures, ratesOf } from './figures.ts'
import { bytes, count, duration } from './format.ts'

/** The process that answers here. */
export function Node({ now, history }: { now: Figures; history: readonly Figures[] }) {
  const { log, version, startedAt, at } = now
  const cpu = ratesOf(history.slice(-2), (figures) => figures.process.cpuMs).at(-1)
  const facts: [string, string][] = [
    ['version', version],
    ['up for', duration(at - startedAt)],
    ['log', `${log.name}, durable in ${log.durability}`],
    [
      'keeps of a channel',
      `${count(log.window.maxEvents)} events, ${duration(log.window.maxAgeMs)}, ${bytes(log.window.maxBytes)}`,
    ],
    ['processor', cpu === null || cpu === undefined ? '–' : `${(cpu / 10).toFixed(1)} %`],
    ['memory', bytes(now.process.rssBytes)],
    ['event loop late by', duration(now.process.lateMs)],
    ['turned away', count(now.rejects)],
  ]
  return (
    <section className="card" aria-labelledby="node">
      <h2 id="node">
        Node <small>{location.host}</small>
      </h2>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
