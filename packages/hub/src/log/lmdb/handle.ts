// biome-ignore lint/style/noRestrictedImports: an optional peer; only its types are named here
import type { RootDatabase } from 'lmdb'

export type Database = RootDatabase<Buffer, Buffer>

/**
 * The open file, and a way to open it again. LMDB gives up a handle for good, also for reading, once the disk has rejected
 * the root that ends a commit: it cannot know which root the disk has now. It then has put the old root back, and a handle
 * that is made anew goes on from that one. The commit that follows replaces the one that failed.
 */
export interface Handle {
  readonly database: Database
  /** Undefined when it can be used. Else it is being opened again, which may fail and is tried with each call. */
  ready(): Promise<void> | undefined
  /** Whether LMDB has given it up. */
  isLost(): boolean
  /** Opens it again. */
  renew(): Promise<void>
  close(): Promise<void>
}

export function createHandle(open: () => Database): Handle {
  let database = open()
  let isOpen = true
  let renewal: Promise<void> | undefined
  let closing: Promise<void> | undefined

  async function reopen(): Promise<void> {
    // As long as it is open, opening it again would give the same handle.
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
        // What is still being read from the snapshot of before would not notice.
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
