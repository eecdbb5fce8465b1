/**
 * What stands at a byte of an LMDB file: for a table of what damage does where. Of MDB_page in the mdb.c of lmdb 3: a header
 * of 24 bytes, in which the flags stand at 18 and the end of the list of nodes at 20.
 */
export function pageAt(file: Buffer, at: number): PageKind {
  const start = startOfPage(at)
  const flags = file.readUInt16LE(start + 18)
  const offset = at - start
  if (start < 2 * pageBytes) return offset < headerBytes + metaBytes ? 'root' : 'unused'
  // Pages that were let go keep what they were until they are used again, so some of these are free.
  if (flags & 4) return offset < headerBytes ? 'header' : 'data'
  if (!(flags & 3)) return 'data'
  if (offset < headerBytes) return 'header'
  const lower = headerBytes + file.readUInt16LE(start + 20)
  if (offset < lower) return 'node list'
  return flags & 1 ? 'branch' : 'leaf'
}

export function startOfPage(at: number): number {
  return at - (at % pageBytes)
}

export type PageKind = 'root' | 'header' | 'node list' | 'branch' | 'leaf' | 'data' | 'unused'

const pageBytes = 4096
const headerBytes = 24
const metaBytes = 144
