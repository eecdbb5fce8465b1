import { text } from 'node:stream/consumers'
import { getHeapSnapshot } from 'node:v8'

/** How many objects of one kind are on the heap, and their bytes, without those of the objects that they refer to. */
export interface Kind {
  readonly objects: number
  readonly bytes: number
}

/** All that is on this process's heap, by constructor. Functions go by their names, everything else by what V8 calls it. */
export async function profileHeap(): Promise<Record<string, Kind>> {
  globalThis.gc!()
  const { snapshot, nodes, strings } = JSON.parse(await text(getHeapSnapshot())) as Snapshot
  const { node_fields: fields, node_types: types } = snapshot.meta
  const [type, name, size] = ['type', 'name', 'self_size'].map((field) => fields.indexOf(field)) as [
    number,
    number,
    number,
  ]
  const kinds = new Map<string, { objects: number; bytes: number }>()
  for (let at = 0; at < nodes.length; at += fields.length) {
    const called = types[type]![nodes[at + type]!]!
    const named = strings[nodes[at + name]!]!
    const kind =
      called === 'object' ? named : called === 'closure' ? `function ${named || '(anonymous)'}` : `(${called})`
    const sum = kinds.get(kind) ?? { objects: 0, bytes: 0 }
    sum.objects += 1
    sum.bytes += nodes[at + size]!
    kinds.set(kind, sum)
  }
  return Object.fromEntries(kinds)
}

/** The parts of a snapshot in the format of Chrome's developer tools. */
interface Snapshot {
  readonly snapshot: { readonly meta: { readonly node_fields: string[]; readonly node_types: [string[], ...string[]] } }
  readonly nodes: readonly number[]
  readonly strings: readonly string[]
}
