import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { invalidOption } from '../../../invalid-option.ts'

/**
 * Reads the root of a file; undefined when nothing was ever committed to it. Rejects a file that is not LMDB's. LMDB maps the
 * file into memory and trusts it, so with another file a signal would end the process without a message.
 */
export async function readRoot(path: string): Promise<NewestRoot | undefined> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!file) return undefined
  try {
    const { size } = await file.stat()
    if (size === 0) return undefined
    const first = await readRootAt(file, 0)
    const second = first && (await readRootAt(file, first.pageSize))
    if (!first || !second || first.pageSize !== second.pageSize) {
      rejectFile(path, 'is not a log of Rejoin, or its beginning is damaged')
    }
    const [newest, older] = first.transaction > second.transaction ? [first, second] : [second, first]
    return { ...newest, isContinued: newest.transaction - older.transaction <= 1n }
  } finally {
    await file.close()
  }
}

/** One of the two roots of the file. The root with the higher transaction is the valid one. */
export interface Root {
  readonly transaction: bigint
  readonly pageSize: number
  /**
   * The last page that was ever assigned. It may lie past the end of a healthy file: when one transaction assigns a page and
   * frees it again, LMDB counts the page and does not write it.
   */
  readonly lastPage: number
  /** Lists the free pages. */
  readonly free: Tree
  /** Holds the keys and values. */
  readonly main: Tree
}

export interface NewestRoot extends Root {
  /**
   * Whether the other root is that of the commit before. If not, an older copy was written over the file while a process had
   * it open, and the newest commit was built on that copy.
   */
  readonly isContinued: boolean
}

/** A B+ tree of the file, as its root describes it. */
export interface Tree {
  /** Levels of pages, 0 for an empty tree. */
  readonly depth: number
  readonly branchPages: number
  readonly leafPages: number
  readonly overflowPages: number
  readonly entries: number
  /** The number of the tree's root page; without meaning for an empty tree. */
  readonly page: number
}

export function rejectFile(path: string, how: string): never {
  throw invalidOption(
    `The file ${path} ${how}. Restore it, or choose another folder than ${dirname(path)}; readers will be told of the gap.`,
  )
}

// The layout follows MDB_page, MDB_meta and MDB_db in the mdb.c of lmdb 3: two root pages at the start of the file, written in
// turn.
export const rootBytes = 168
const magic = 0xbeef_c0de
const version = 2

async function readRootAt(file: FileHandle, at: number): Promise<Root | undefined> {
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(rootBytes), position: at })
  return bytesRead < rootBytes ? undefined : rootIn(buffer)
}

/** Undefined when these bytes are no root. */
export function rootIn(buffer: Buffer): Root | undefined {
  if (buffer.readUInt32LE(24) !== magic || buffer.readUInt32LE(28) !== version) return undefined
  const pageSize = buffer.readUInt32LE(48)
  const lastPage = numberAt(buffer, 144)
  if (pageSize < 512 || pageSize > 65_536 || lastPage < 1) return undefined
  const transaction = transactionOf(buffer)
  return { transaction, pageSize, lastPage, free: treeAt(buffer, 48), main: treeAt(buffer, 96) }
}

/** The transaction of a root. The caller has checked that these bytes are one. */
export function transactionOf(root: Buffer): bigint {
  return root.readBigUInt64LE(152)
}

function treeAt(buffer: Buffer, at: number): Tree {
  return {
    depth: buffer.readUInt16LE(at + 6),
    branchPages: numberAt(buffer, at + 8),
    leafPages: numberAt(buffer, at + 16),
    overflowPages: numberAt(buffer, at + 24),
    entries: numberAt(buffer, at + 32),
    page: numberAt(buffer, at + 40),
  }
}

function numberAt(buffer: Buffer, at: number): number {
  return Number(buffer.readBigUInt64LE(at))
}
