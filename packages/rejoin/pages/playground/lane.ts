import { createStore, type Store } from '../shared/store.ts'

/**
 * One lane of the playground: the newest numbers as squares, the counts, and the state of the connection. A number counts as
 * missing once a later number has arrived; before, it may still be on its way.
 */
export interface Lane extends Store<LaneView> {
  readonly isConnected: boolean
  /** The highest number that has arrived, or that an announced gap covers. */
  readonly highest: number
  connected(): void
  /** Called when the connection is gone. `retryAt` is the time of the next attempt, if known. */
  away(text: string, retryAt?: number | null): void
  /** Called when a number is about to be published. */
  sending(number: number): void
  /** Called when a number could not be published, so that it cannot be missing. */
  unsent(number: number): void
  receive(number: number): void
  /** Called when an event came twice, and was delivered once. */
  duplicate(): void
  /** Called when the hub has announced a gap: numbers up to `upTo` that have not arrived are gone. */
  announced(upTo: number): void
}

export type Kind = 'sent' | 'unsent' | 'live' | 'replayed' | 'missing' | 'announced'

export interface LaneView {
  /** The number of the first square. */
  readonly first: number
  readonly kinds: readonly (Kind | undefined)[]
  readonly counts: Counts
  readonly line: Line
}

export interface Counts {
  readonly published: number
  readonly received: number
  readonly replayed: number
  readonly duplicates: number
  readonly announced: number
  readonly missing: number
}

export interface Line {
  readonly state: 'connecting' | 'connected' | 'away'
  readonly text: string
  readonly retryAt: number | null
}

export const columns = 10
const rows = 7

export function createLane(): Lane {
  const counts = { published: 0, received: 0, replayed: 0, duplicates: 0, announced: 0, missing: 0 }
  const kinds = new Map<number, Kind>()
  const sentAt = new Map<number, number>()
  let line: Line = { state: 'connecting', text: 'connecting', retryAt: null }
  let first = 1
  let highest = 0
  let openedAt: number | undefined
  const store = createStore(view())

  function view(): LaneView {
    const shown = Array.from({ length: columns * rows }, (_, index) => kinds.get(first + index))
    return { first, kinds: shown, counts: { ...counts }, line }
  }

  const show = () => store.set(view())

  /** Moves by a whole row, so that the squares stand still in between. */
  function slide(): void {
    for (let column = 0; column < columns; column++) {
      // Forgets old numbers, so that a tab that is open for days does not grow.
      kinds.delete(first - 5000)
      sentAt.delete(first - 5000)
      first += 1
    }
  }

  function countOf(kind: Kind | undefined): 'announced' | 'missing' | undefined {
    return kind === 'announced' || kind === 'missing' ? kind : undefined
  }

  /** Marks a number that has not arrived as missing, or as announced. */
  function giveUp(number: number, kind: 'announced' | 'missing'): void {
    const known = kinds.get(number)
    if (known !== 'sent' && known !== 'missing') return
    if (known === 'missing') counts.missing -= 1
    counts[kind] += 1
    kinds.set(number, kind)
  }

  return {
    subscribe: store.subscribe,
    getSnapshot: store.getSnapshot,
    get isConnected() {
      return openedAt !== undefined
    },
    get highest() {
      return highest
    },
    connected() {
      // Told again while it is connected, when another part of the state changes.
      openedAt ??= performance.now()
      line = { state: 'connected', text: 'connected', retryAt: null }
      show()
    },
    away(text, retryAt = null) {
      openedAt = undefined
      line = { state: 'away', text, retryAt }
      show()
    },
    sending(number) {
      sentAt.set(number, performance.now())
      counts.published += 1
      while (number >= first + columns * rows) slide()
      kinds.set(number, 'sent')
      show()
    },
    unsent(number) {
      if (kinds.get(number) === 'sent') {
        kinds.set(number, 'unsent')
        counts.published -= 1
      }
      show()
    },
    receive(number) {
      const known = kinds.get(number)
      if (known === 'live' || known === 'replayed') {
        counts.duplicates += 1
      } else {
        const counted = countOf(known)
        if (counted) counts[counted] -= 1
        // Published before this connection was opened, so the hub has replayed it.
        const isKept = openedAt !== undefined && (sentAt.get(number) ?? 0) < openedAt
        counts.received += 1
        // The number was published after all: only the answer to its publish was lost.
        if (known === 'unsent') counts.published += 1
        if (isKept) counts.replayed += 1
        kinds.set(number, isKept ? 'replayed' : 'live')
        for (; highest < number; highest++) giveUp(highest, 'missing')
      }
      show()
    },
    duplicate() {
      counts.duplicates += 1
      show()
    },
    announced(upTo) {
      for (let number = Math.max(1, upTo - 5000); number <= upTo; number++) giveUp(number, 'announced')
      highest = Math.max(highest, upTo)
      show()
    },
  }
}
