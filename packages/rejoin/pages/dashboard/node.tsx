import { durationWords } from '../../src/logging/duration.ts'
import type { Figures } from '../../src/monitoring/figures.ts'
import { ratesOf } from './figures.ts'
import { bytes, count } from './format.ts'
import { Rows } from './rows.tsx'

/** The process that serves this page, and the other hubs on its log. */
export function Node({ now, history }: { now: Figures; history: readonly Figures[] }) {
  const { log, node, nodes, version, startedAt, at } = now
  const cpu = ratesOf(history.slice(-2), (figures) => figures.process.cpuMs).at(-1)
  // The note of this node is up to five seconds old, and the figures above it are of this second.
  const own = {
    connections: now.readers.live + now.readers.replaying,
    deliveriesPerSecond: ratesOf(history.slice(-2), ({ totals }) => totals.deliveries).at(-1) ?? 0,
    rssBytes: now.process.rssBytes,
  }
  const facts: [string, string][] = [
    ['version', version],
    ['up for', durationWords(at - startedAt)],
    ['log', `${log.name}, safe ${safety[log.durability]}`],
    [
      'keeps of a channel',
      `${count(log.window.maxEvents)} events, ${durationWords(log.window.maxAgeMs)}, ${bytes(log.window.maxBytes)}`,
    ],
    ['processor', cpu === null || cpu === undefined ? '–' : `${(cpu / 10).toFixed(1)} %`],
    ['memory', bytes(now.process.rssBytes)],
    ['event loop late by', durationWords(now.process.lateMs)],
  ]
  return (
    <section className="card" aria-labelledby="node">
      <h2 id="node">
        This node <small>{node}</small>
      </h2>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h3>Nodes on this log {nodes && nodes.length > 1 && <small>the others report every 5 s</small>}</h3>
      {nodes && nodes.length > 0 ? (
        <Nodes nodes={nodes.map((each) => (each.name === node ? { ...each, ...own } : each))} node={node} at={at} />
      ) : (
        <p className="more">
          {nodes
            ? 'The log has not told of any: it does not answer, or this node has just started.'
            : `Only this one: a log of the kind “${log.name}” is used by one node.`}
        </p>
      )}
    </section>
  )
}

/** How safe an event is when its publish is answered, in words. */
const safety: Record<Figures['log']['durability'], string> = {
  memory: 'in memory alone',
  os: 'from a crash of the program',
  disk: 'on the disk',
  replicated: 'on other machines',
}

function Nodes({ nodes, node, at }: { nodes: NonNullable<Figures['nodes']>; node: string; at: number }) {
  return (
    <Rows label="Nodes on this log" headings={['node', 'version', 'up for', 'connections', 'deliveries/s', 'memory']}>
      {nodes.map((each) => (
        <tr key={each.name}>
          <td className="name" title={each.name}>
            {each.name}
            {each.name === node && <small> this one</small>}
          </td>
          <td>{each.version}</td>
          <td data-label="up for">{durationWords(Math.max(0, at - each.startedAt))}</td>
          <td data-label="connections">{count(each.connections)}</td>
          <td data-label="deliveries/s">{count(each.deliveriesPerSecond)}</td>
          <td data-label="memory">{bytes(each.rssBytes)}</td>
        </tr>
      ))}
    </Rows>
  )
}
