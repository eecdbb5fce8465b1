import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { RejoinError } from '@rejoin/protocol'

/**
 * Refuses a file that is not LMDB's, or shorter than its own root says. LMDB maps the file into memory and trusts it: with
 * either of those, the process would end by a signal, without a word.
 */
export async function checkFile(path: string): Promise<void> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!file) return
  try {
    const { size } = await file.stat()
    // Nothing was ever committed to it.
    if (size === 0) return
    const first = await readRoot(file, 0)
    const second = first && (await readRoot(file, first.pageSize))
    if (!first || !second) {
      refuse(path, 'is not a log of Rejoin, or its beginning is damaged')
    }
    const newest = first.transaction > second.transaction ? first : second
    if (size < newest.bytes) refuse(path, `has ${size} bytes and should have ${newest.bytes}: its end is missing`)
  } finally {
    await file.close()
  }
}

interface Root {
  readonly pageSize: number
  /** As many as everything it refers to takes. */
  readonly bytes: number
  /** The root with the higher number is the one that counts. */
  readonly transaction: bigint
}

// Of MDB_page and MDB_meta in the mdb.c that comes with lmdb 3: two pages at the start of the file, written in turn.
const rootBytes = 168
const magic = 0xbeef_c0de
const version = 2

async function readRoot(file: FileHandle, at: number): Promise<Root | undefined> {
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(rootBytes), position: at })
  if (bytesRead < rootBytes || buffer.readUInt32LE(24) !== magic || buffer.readUInt32LE(28) !== version)
    return undefined
  const pageSize = buffer.readUInt32LE(48)
  const lastPage = Number(buffer.readBigUInt64LE(144))
  if (pageSize < 512 || pageSize > 65_536 || lastPage < 1) return undefined
  return { pageSize, bytes: (lastPage + 1) * pageSize, transaction: buffer.readBigUInt64LE(152) }
}

function refuse(path: string, how: string): never {
  throw new RejoinError(
    `The file ${path} ${how}. Restore it, or choose another folder than ${dirname(path)}; readers will be told of the gap.`,
    { code: 'invalid-option' },
  )
}
