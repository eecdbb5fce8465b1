import type { Figures } from '../../src/dashboard/figures.ts'
import { durationWords } from '../../src/logging/duration.ts'
import { ratesOf } from './figures.ts'
import { bytes, count } from './format.ts'
import { Rows } from './rows.tsx'

/** The process that serves this page, and the other hubs on its log. */
export function Node({ now, history }: { now: Figures; history: readonly Figures[] }) {
  const { log, node, nodes, version, startedAt, at } = now
  const cpu = ratesOf(history.slice(-2), (figures) => figures.process.cpuMs).at(-1)
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
      <h3>Nodes on this log</h3>
      {nodes && nodes.length > 0 ? (
        <Nodes nodes={nodes} node={node} at={at} />
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
          <td className="name">
            {each.name}
            {each.name === node && <small> this one</small>}
          </td>
          <td>{each.version}</td>
          <td>{durationWords(Math.max(0, at - each.startedAt))}</td>
          <td>{count(each.connections)}</td>
          <td>{count(each.deliveriesPerSecond)}</td>
          <td>{bytes(each.rssBytes)}</td>
        </tr>
      ))}
    </Rows>
  )
}
