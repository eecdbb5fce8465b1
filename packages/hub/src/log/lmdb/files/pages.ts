import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Root, readRoot, rejectFile, type Tree } from './roots.ts'
import { dataName } from './store.ts'

/**
 * Rejects a damaged file before LMDB uses it. LMDB has no checksums and trusts every page. Reading a damaged page can end the
 * process by a signal, and writing beside it can lose the entries of channels that nothing else is wrong with: their readers
 * would miss events in silence. docs/decisions/lmdb.md has figures. The caller keeps writers away.
 *
 * @param maxPages - a file with more pages in use is not checked
 */
export async function checkFile(folder: string, maxPages = pagesAtOpen): Promise<void> {
  const path = join(folder, dataName)
  const root = await readRoot(path)
  if (!root) return
  // A damaged root may count more pages than there are. The walk then finds out.
  const pages = Math.min(pagesOf(root.main) + pagesOf(root.free), (await stat(path)).size / root.pageSize)
  if (pages > maxPages) return
  const damage = findDamage(path, root)
  if (damage) rejectFile(path, `is damaged: ${damage}. A write would lose more of it`)
}

// 1 GB. A page takes some 5 µs.
const pagesAtOpen = 250_000

function pagesOf({ branchPages, leafPages, overflowPages }: Tree): number {
  return branchPages + leafPages + overflowPages
}

/** Follows the trees of a file from its root through all their pages, without LMDB. */
function findDamage(path: string, root: Root): string | undefined {
  const descriptor = openSync(path, 'r')
  try {
    const read = createPageReader(descriptor, root)
    const used = new Set<number>()
    walk(read, root.main, { used, compare: Buffer.compare })
    const lists: Buffer[] = []
    walk(read, root.free, { used, compare: compareNumbers, onValue: (list) => void lists.push(Buffer.from(list)) })
    for (const list of lists) {
      for (const page of pagesIn(list, root)) {
        if (used.has(page)) throw new Damage(`page ${page} is in use and counts as free`)
      }
    }
    return undefined
  } catch (found) {
    if (found instanceof Damage) return found.how
    throw found
  } finally {
    closeSync(descriptor)
  }
}

class Damage {
  readonly how: string

  constructor(how: string) {
    this.how = how
  }
}

/** Reads the page of this number, or the first `wanted` of `run` pages that belong together. Good until the next call at its level. */
type ReadPage = (number: number, level: number, run?: number, wanted?: number) => Buffer

function createPageReader(descriptor: number, { pageSize, lastPage, transaction }: Root): ReadPage {
  const pages = Math.floor(fstatSync(descriptor).size / pageSize)
  // The walk needs a page until it has looked at all its children, and one page of each level at a time.
  const buffers: Buffer[] = []

  return (number, level, run = 1, wanted = run) => {
    if (!(number >= 2 && number + run - 1 <= lastPage)) throw new Damage(`page ${number} cannot be`)
    if (number + run > pages) throw new Damage('its end is missing')
    const bytes = wanted * pageSize
    const buffer = buffers[level]
    const page = buffer?.length === bytes ? buffer : Buffer.allocUnsafe(bytes)
    buffers[level] = page
    readSync(descriptor, page, 0, bytes, number * pageSize)
    if (Number(page.readBigUInt64LE(0)) !== number) throw new Damage(`page ${number} says that it is another`)
    // LMDB would take a newer page for one of its current transaction, and overwrite it.
    if (page.readBigUInt64LE(8) > transaction) throw new Damage(`page ${number} is newer than its root`)
    return page
  }
}

interface Visit {
  /** The pages found so far. */
  readonly used: Set<number>
  compare(a: Buffer, b: Buffer): number
  /** Gets every value. Left out, the walk does not read the whole of values with pages of their own. */
  onValue?(value: Buffer): void
}

// The layout follows MDB_page and MDB_node in the mdb.c of lmdb 3. Offsets of nodes count from the end of the header.
const headerBytes = 24
const nodeBytes = 8
// MDB_ovpage: where a value with pages of its own is.
const overflowBytes = 24
const branchFlag = 1
const leafFlag = 2
const overflowFlag = 4
const kindFlags = 0x7f
const bigDataFlag = 1
// CURSOR_STACK of mdb.c.
const maxDepth = 32

function walk(read: ReadPage, tree: Tree, visit: Visit): void {
  if (tree.depth === 0) return
  if (tree.depth > maxDepth) throw new Damage('its root is damaged')
  const count = { branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 }
  let before: Buffer | undefined

  function use(number: number, run: number): void {
    for (let page = number; page < number + run; page += 1) {
      // Without this check, a page that is reached twice could lead in a circle.
      if (visit.used.has(page)) throw new Damage(`page ${page} is in use twice`)
      visit.used.add(page)
    }
  }

  /** Checks that all keys below a page are at least `from` and less than `to`. A lookup would not find any other key. */
  function descend(number: number, level: number, from: Buffer | undefined, to: Buffer | undefined): void {
    const page = read(number, level)
    use(number, 1)
    const isLeaf = level === tree.depth
    if ((page.readUInt16LE(18) & kindFlags) !== (isLeaf ? leafFlag : branchFlag)) {
      throw new Damage(`page ${number} is of another kind than its position`)
    }
    count[isLeaf ? 'leafPages' : 'branchPages'] += 1
    const nodes = nodesOf(page, isLeaf)
    if (isLeaf) {
      for (const at of nodes) leafNode(page, at, from, to)
      // The next leaf is read into the same buffer.
      before = before && Buffer.from(before)
      return
    }
    // LMDB does not store the first key of a branch page: it is the lower bound of the page itself.
    const keys = nodes.map((at, index) => (index === 0 ? from : keyOf(page, at)))
    for (const [index, at] of nodes.entries()) {
      descend(childOf(page, at), level + 1, keys[index], index + 1 < nodes.length ? keys[index + 1] : to)
    }
  }

  function leafNode(page: Buffer, at: number, from: Buffer | undefined, to: Buffer | undefined): void {
    const key = keyOf(page, at)
    const isOrdered = before === undefined || visit.compare(before, key) < 0
    if (!isOrdered || (from && visit.compare(key, from) < 0) || (to && visit.compare(key, to) >= 0)) {
      throw new Damage('its keys are out of order')
    }
    before = key
    count.entries += 1
    const size = valueSize(page, at)
    const start = at + nodeBytes + key.length
    if (isElsewhere(page, at)) bigValue(Number(page.readBigUInt64LE(start)), size, page.length)
    else visit.onValue?.(page.subarray(start, start + size))
  }

  function bigValue(number: number, size: number, pageSize: number): void {
    const run = Math.ceil((headerBytes + size) / pageSize)
    const pages = read(number, maxDepth + 1, run, visit.onValue ? run : 1)
    use(number, run)
    if ((pages.readUInt16LE(18) & kindFlags) !== overflowFlag || pages.readUInt32LE(20) !== run) {
      throw new Damage(`page ${number} is of another kind than its position`)
    }
    count.overflowPages += run
    visit.onValue?.(pages.subarray(headerBytes, headerBytes + size))
  }

  descend(tree.page, 1, undefined, undefined)
  for (const kind of ['branchPages', 'leafPages', 'overflowPages', 'entries'] as const) {
    if (count[kind] !== tree[kind]) throw new Damage(`its root counts ${tree[kind]} ${kind}, and it has ${count[kind]}`)
  }
}

function nodesOf(page: Buffer, isLeaf: boolean): number[] {
  const lower = page.readUInt16LE(20)
  const upper = page.readUInt16LE(22)
  const end = page.length - headerBytes
  if (lower < 2 || lower % 2 !== 0 || lower > upper || upper > end) throw new Damage('a page has no list of nodes')
  const nodes: number[] = []
  let filled = 0
  for (let index = 0; index < lower / 2; index += 1) {
    const at = page.readUInt16LE(headerBytes + 2 * index)
    if (at < upper || at + nodeBytes > end) throw new Damage('a page names a node that is none')
    const size = nodeSize(page, headerBytes + at, isLeaf)
    if (at + size > end) throw new Damage('a node reaches past its page')
    filled += size
    nodes.push(headerBytes + at)
  }
  // LMDB leaves no room between nodes, and moves them by their sizes: with a wrong size, the next write loses other nodes.
  if (filled !== end - upper) throw new Damage('the nodes of a page do not fill it')
  return nodes
}

function nodeSize(page: Buffer, at: number, isLeaf: boolean): number {
  const value = isLeaf ? (isElsewhere(page, at) ? overflowBytes : valueSize(page, at)) : 0
  const size = nodeBytes + page.readUInt16LE(at + 6) + value
  return size + (size % 2)
}

/** Whether the value of a node of a leaf has pages of its own. The other flags are for features that the log does not use. */
function isElsewhere(page: Buffer, at: number): boolean {
  const flags = page.readUInt16LE(at + 4)
  if (flags > bigDataFlag) throw new Damage('a node has unknown flags')
  return flags === bigDataFlag
}

function valueSize(page: Buffer, at: number): number {
  return page.readUInt16LE(at) + page.readUInt16LE(at + 2) * 2 ** 16
}

function keyOf(page: Buffer, at: number): Buffer {
  const start = at + nodeBytes
  return page.subarray(start, start + page.readUInt16LE(at + 6))
}

function childOf(page: Buffer, at: number): number {
  return page.readUInt16LE(at) + page.readUInt16LE(at + 2) * 2 ** 16 + page.readUInt16LE(at + 4) * 2 ** 32
}

/** The free tree's keys are the numbers of transactions. */
function compareNumbers(a: Buffer, b: Buffer): number {
  if (a.length !== 8 || b.length !== 8) throw new Damage('its list of free pages is damaged')
  const [first, second] = [a.readBigUInt64LE(0), b.readBigUInt64LE(0)]
  return first < second ? -1 : Number(first > second)
}

/** A list starts with its length. A negative number is the length of a run, whose first page comes next; 0 is no page. */
function* pagesIn(list: Buffer, { lastPage }: Root): Generator<number> {
  const length = list.length >= 8 ? Number(list.readBigUInt64LE(0)) : -1
  if (!(length >= 0 && (length + 1) * 8 <= list.length)) throw new Damage('its list of free pages is damaged')
  for (let index = 1; index <= length; index += 1) {
    let page = Number(list.readBigInt64LE(index * 8))
    let run = 1
    if (page < 0 && index < length) {
      run = -page
      index += 1
      page = Number(list.readBigInt64LE(index * 8))
    }
    if (page === 0) continue
    if (!(page >= 2 && page + run - 1 <= lastPage)) throw new Damage('its list of free pages is damaged')
    for (let next = 0; next < run; next += 1) yield page + next
  }
}
