// biome-ignore lint/style/noRestrictedImports: an optional peer; only its types are named here
import type { RootDatabase } from 'lmdb'

export type Database = RootDatabase<Buffer, Buffer>

/**
 * The open file, and a way to open it again. When the disk rejects the root that ends a commit, LMDB gives up the handle for
 * good, for reading as well: it cannot know which root the disk has. LMDB has put the old root back by then. A new handle goes
 * on from the old root, and the next commit replaces the failed one.
 */
export interface Handle {
  readonly database: Database
  /** Undefined when the handle can be used. Otherwise opens it again, which may fail; each call tries it. */
  ready(): Promise<void> | undefined
  /** Whether LMDB has given the handle up. */
  isLost(): boolean
  /** Opens the file again. */
  renew(): Promise<void>
  close(): Promise<void>
}

export function createHandle(open: () => Database): Handle {
  let database = open()
  let isOpen = true
  let renewal: Promise<void> | undefined
  let closing: Promise<void> | undefined

  async function reopen(): Promise<void> {
    // Closes first: LMDB returns the same handle for a file that is still open.
    if (isOpen) await database.close()
    isOpen = false
    database = open()
    isOpen = true
  }

  function renew(): Promise<void> {
    if (closing) return closing
    renewal ??= reopen().finally(() => {
      renewal = undefined
    })
    return renewal
  }

  async function close(): Promise<void> {
    await renewal?.catch(() => undefined)
    if (isOpen) await database.close()
  }

  return {
    get database() {
      return database
    },
    ready: () => (isOpen && !renewal ? undefined : renew()),
    isLost() {
      try {
        // Drops the snapshot, because a read from the old snapshot would still succeed.
        database.resetReadTxn()
        database.getBinary(anyKey)
        return false
      } catch (error) {
        return (error as Error).message.includes('MDB_PANIC')
      }
    },
    renew,
    close() {
      closing ??= close()
      return closing
    },
  }
}

const anyKey = Buffer.from([0])
