import type { Environment } from '../environment.ts'

/** Who holds how many bytes of the hub's memory. Each account has its own limit, and its own rule for who is evicted beyond it. */
export interface ByteLedger {
  /**
   * Bytes that were copied for single streams, until their readers take them. Each stream has a budget, but thousands of readers
   * that stop reading would fill the memory together. Live bytes do not count, because readers share them.
   */
  readonly streams: Account
  /** Poll answers from their first event on, and other long answers, until their readers have taken them. */
  readonly answers: Account
  /** Bodies of publishes, until their events are in the log. */
  readonly bodies: Account
  /** For sessions whose bytes are counted in another account. */
  readonly unlimited: Account
  stop(): void
}

export interface Account {
  readonly bytes: number
  readonly maxBytes: number
  /** Evicted holders since the start. */
  readonly evictions: Readonly<Record<EvictionReason, number>>
  /** Opens an entry. Without a holder, the entry counts and is never evicted. */
  open(holder?: Holder, connection?: object): Entry
  /** Opens an entry for all the bytes that its holder has pending, and watches it. */
  send(holder: Holder, connection: object): Entry
  /** Bytes that may be added now. At the limit, this first recounts what was taken, or evicts, as the account's rule says. */
  free(): number
  /** Bytes of all entries over this connection. */
  heldBy(connection: object): number
  /** Resolves when there may be free bytes. */
  room(): Promise<void>
}

/** Use a class: V8 frees an object literal with getters only in a full collection. */
export interface Holder {
  /** Bytes that the peer has yet to take. While this number falls, the peer is alive. */
  readonly pending: number
  /** Called once. The entry is closed already. */
  evict(reason: EvictionReason): void
}

/** `stalled`: the peer took nothing for `stallTimeoutMs`. `overloaded`: others needed the memory. */
export type EvictionReason = 'stalled' | 'overloaded'

export interface Entry {
  add(bytes: number): void
  /** From now on, the peer has to take bytes within `stallTimeoutMs`. */
  watch(): void
  /** The peer has taken everything, or enough to be given more. */
  drained(): void
  /** The bytes still count, but are no longer evicted. */
  pin(): void
  close(): void
}

export interface ByteLedgerOptions {
  readonly maxStreamBytes: number
  readonly maxAnswerBytes: number
  readonly maxIncomingBytes: number
  readonly stallTimeoutMs: number
  readonly environment: Environment
  onAnswerEvicted(pending: number): void
}

/** Peers have this long before they are evicted for others. */
const patienceMs = 1000
const longestCheckMs = 250

export function createByteLedger(options: ByteLedgerOptions): ByteLedger {
  const { environment, stallTimeoutMs, maxStreamBytes, maxAnswerBytes, maxIncomingBytes, onAnswerEvicted } = options
  const checkEveryMs = Math.min(longestCheckMs, stallTimeoutMs / 4)
  // Time is counted in checks: if the clock were set back, a dead reader would be kept for longer. The first check may come at once.
  const checksIn = (ms: number) => Math.ceil(ms / checkEveryMs) + 1
  let cancel: (() => void) | undefined

  function startChecks(): void {
    cancel ??= environment.after(checkEveryMs, () => {
      cancel = undefined
      for (const account of accounts) account.check()
      if (accounts.some((account) => account.hasEntries)) startChecks()
    })
  }

  const shared = { environment, startChecks, stallChecks: checksIn(stallTimeoutMs) }
  const evictAfterChecks = checksIn(patienceMs)
  const streams = createAccount({
    ...shared,
    evictAfterChecks,
    maxBytes: maxStreamBytes,
    // An eighth is freed. Otherwise the next check would find the account full again.
    evictTo: (maxStreamBytes * 7) / 8,
    evictSlowest: true,
  })
  const answers = createAccount({
    ...shared,
    evictAfterChecks,
    maxBytes: maxAnswerBytes,
    evictTo: maxAnswerBytes - 1,
    onEvict: onAnswerEvicted,
  })
  // Honest bodies are complete within moments, so the oldest incomplete body may be an attack.
  const bodies = createAccount({
    ...shared,
    evictAfterChecks: 0,
    maxBytes: maxIncomingBytes,
    evictTo: maxIncomingBytes,
  })
  const [maxBytes, evictTo] = [Number.POSITIVE_INFINITY, 0]
  const unlimited = createAccount({ ...shared, evictAfterChecks, maxBytes, evictTo })
  const accounts = [streams, answers, bodies, unlimited]

  return { streams, answers, bodies, unlimited, stop: () => cancel?.() }
}

interface Policy {
  readonly maxBytes: number
  /** Beyond `maxBytes`, entries are evicted until this many bytes are left. */
  readonly evictTo: number
  /** Entries are evicted for others only after this many checks. */
  readonly evictAfterChecks: number
  /**
   * Whether entries count only what their peers have yet to take. If such an account stays full, it evicts the entries whose peers
   * took the least meanwhile. Left out, entries count in full until they are closed, and the oldest go as soon as there is no room.
   */
  readonly evictSlowest?: boolean
  /** A watched entry is evicted after this many checks without progress. */
  readonly stallChecks: number
  readonly environment: Environment
  startChecks(): void
  onEvict?(pending: number): void
}

interface CheckedAccount extends Account {
  readonly hasEntries: boolean
  check(): void
}

function createAccount({
  maxBytes,
  evictTo,
  evictAfterChecks,
  evictSlowest = false,
  ...policy
}: Policy): CheckedAccount {
  let bytes = 0
  const evictions = { stalled: 0, overloaded: 0 }
  const byConnection = new WeakMap<object, number>()
  /** Entries that may be evicted, the oldest first. */
  const entries = new Set<AccountEntry>()
  let waiting: (() => void)[] = []
  let isRecounted = false

  class AccountEntry implements Entry {
    bytes = 0
    /** Checks since the entry was opened. With `evictSlowest`, checks in a row that found it in a full account. */
    checks = 0
    /** Bytes that the peer took during these checks. */
    taken = 0
    /** The fewest bytes that were pending; -1 while the entry is not watched. */
    #fewestPending = -1
    #checksWithoutProgress = 0
    #isClosed = false
    readonly #holder: Holder
    readonly #connection: object | undefined

    constructor(holder: Holder, connection: object | undefined) {
      this.#holder = holder
      this.#connection = connection
      if (!evictSlowest && holder !== nobody) this.#list()
    }

    #list(): void {
      entries.add(this)
      policy.startChecks()
    }

    #set(held: number): void {
      const more = held - this.bytes
      this.bytes = held
      bytes += more
      if (this.#connection) byConnection.set(this.#connection, heldBy(this.#connection) + more)
      if (more < 0) this.taken -= more
    }

    add(more: number): void {
      if (this.#isClosed) return
      this.#set(this.bytes + more)
      if (evictSlowest) {
        this.#list()
        this.recount()
      } else if (bytes > maxBytes) evict()
    }

    recount(): void {
      const { pending } = this.#holder
      if (pending < this.bytes) this.#set(pending)
      if (this.bytes === 0 && this.#fewestPending < 0) entries.delete(this)
    }

    watch(): void {
      if (this.#isClosed) return
      // More may have been written since the last check. From now on, a smaller number is progress.
      this.#fewestPending = Math.max(this.#fewestPending, this.#holder.pending)
      this.#list()
    }

    drained(): void {
      this.#fewestPending = -1
      this.#checksWithoutProgress = 0
      this.recount()
    }

    /** Called by each check. */
    isStalled(): boolean {
      if (this.#fewestPending < 0) return false
      const { pending } = this.#holder
      this.#checksWithoutProgress = pending < this.#fewestPending ? 0 : this.#checksWithoutProgress + 1
      this.#fewestPending = Math.min(this.#fewestPending, pending)
      return this.#checksWithoutProgress >= policy.stallChecks
    }

    evict(reason: EvictionReason): void {
      const { pending } = this.#holder
      evictions[reason] += 1
      this.close()
      policy.onEvict?.(pending)
      this.#holder.evict(reason)
    }

    pin(): void {
      entries.delete(this)
    }

    close(): void {
      this.#isClosed = true
      this.#set(0)
      entries.delete(this)
      wake()
    }
  }

  function heldBy(connection: object): number {
    return byConnection.get(connection) ?? 0
  }

  function recount(): void {
    for (const entry of entries) entry.recount()
  }

  function evict(): void {
    // Among equals, the largest goes first.
    const bySpeed = (one: AccountEntry, other: AccountEntry) => one.taken - other.taken || other.bytes - one.bytes
    for (const entry of evictSlowest ? [...entries].sort(bySpeed) : entries) {
      if (bytes <= evictTo) return
      if (entry.checks >= evictAfterChecks) entry.evict('overloaded')
      // The others are younger.
      else if (!evictSlowest) return
    }
  }

  function wake(): void {
    if (waiting.length === 0 || bytes >= maxBytes) return
    const woken = waiting
    waiting = []
    for (const resolve of woken) resolve()
  }

  return {
    maxBytes,
    evictions,
    get bytes() {
      return bytes
    },
    get hasEntries() {
      return entries.size > 0
    },
    open: (holder = nobody, connection = undefined) => new AccountEntry(holder, connection),
    send(holder, connection) {
      const entry = new AccountEntry(holder, connection)
      entry.add(holder.pending)
      entry.watch()
      return entry
    },
    free() {
      if (bytes >= maxBytes && !evictSlowest) evict()
      if (bytes >= maxBytes && evictSlowest && !isRecounted) {
        // A stream that is not full does not say when its bytes are taken. So all are recounted, once per turn.
        isRecounted = true
        policy.environment.endOfTurn(() => {
          isRecounted = false
        })
        recount()
      }
      return Math.max(0, maxBytes - bytes)
    },
    heldBy,
    room: () => new Promise((resolve) => void waiting.push(resolve)),
    check() {
      if (evictSlowest) recount()
      const isFull = bytes >= maxBytes
      for (const entry of entries) {
        const isDue = isFull || !evictSlowest
        entry.checks = isDue && entry.bytes > 0 ? entry.checks + 1 : 0
        if (!isDue) entry.taken = 0
        if (entry.isStalled()) entry.evict('stalled')
      }
      if (isFull && evictSlowest) evict()
      wake()
    },
  }
}

const nobody: Holder = { pending: 0, evict: () => undefined }
