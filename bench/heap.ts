/**
 * What an idle reader keeps on the heap, by constructor, beside what plain `res.write` keeps.
 *
 * Method: two servers, each a process of its own, get the same number of raw sockets, each with one request. A snapshot of the
 * server's heap is taken before and after. A row is what the snapshots differ by, divided by the readers: objects of one
 * constructor, and their own bytes without those of the objects that they refer to. Rows of under 8 bytes are left out.
 *
 * How it could mislead: the kernel's memory and that of Node's native objects (a TCP handle, an HTTP parser) are not on the heap.
 * `memory` measures the whole.
 */
import { numbersFrom } from './options.ts'
import { report } from './report.ts'
import type { Kind } from './servers/heap-profile.ts'
import { type SubjectName, startSubject } from './subjects/start.ts'
import { startLoad } from './subjects/subject.ts'

const { connections } = numbersFrom({ connections: 10_000 })
const shownBytes = 8
const nothing: Kind = { objects: 0, bytes: 0 }

const [ours, plain] = [await grownBy('rejoin'), await grownBy('plain res.write')]
const kinds = [...new Set([...ours.keys(), ...plain.keys()])]
const rows = kinds
  .map((kind) => ({ kind, ours: ours.get(kind) ?? nothing, plain: plain.get(kind) ?? nothing }))
  .filter(({ ours, plain }) => Math.max(ours.bytes, plain.bytes) >= shownBytes)
  .sort((one, other) => other.ours.bytes - one.ours.bytes)

report({
  bench: 'heap',
  inputs: { connections },
  figures: [
    { what: 'Rejoin, heap per reader', value: sumOf(ours), unit: 'B' },
    { what: 'plain res.write, heap per reader', value: sumOf(plain), unit: 'B' },
  ],
  details: rows.map(({ kind, ours, plain }) => ({
    constructor: kind,
    objects: ours.objects,
    bytes: ours.bytes,
    'plain objects': plain.objects,
    'plain bytes': plain.bytes,
    'more bytes': ours.bytes - plain.bytes,
  })),
})

/** What one reader adds to the heap of a server, by constructor. */
async function grownBy(name: SubjectName): Promise<Map<string, Kind>> {
  const load = startLoad()
  const { port, tls, readPath, server, stop } = await startSubject(name, load)
  if (!server) throw new Error(`${name} has no heap to look into.`)
  // The first readers bring what all readers share.
  await load.call('connect', { port, tls, count: 100, path: readPath })
  const before = await server.call('profileHeap', undefined)
  await load.call('connect', { port, tls, count: connections, path: readPath })
  const after = await server.call('profileHeap', undefined)
  await stop()
  await load.stop()
  const perReader = (kind: string, what: keyof Kind) =>
    ((after[kind]?.[what] ?? 0) - (before[kind]?.[what] ?? 0)) / connections
  return new Map(
    Object.keys(after).map((kind) => [kind, { objects: perReader(kind, 'objects'), bytes: perReader(kind, 'bytes') }]),
  )
}

function sumOf(grown: ReadonlyMap<string, Kind>): number {
  return [...grown.values()].reduce((sum, { bytes }) => sum + bytes, 0)
}
