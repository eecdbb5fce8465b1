import { connect, type StreamState } from '@rejoin/client'
import type { EndedStream, Figures, Rejection } from '../../src/monitoring/figures.ts'
import { createStore, type Store } from '../shared/store.ts'
import type { Admin } from './admin.ts'

/** The figures of each second, over an ordinary stream of Rejoin: after a cut, the missed seconds are replayed. */
export interface Live {
  readonly store: Store<LiveView>
  close(): void
}

export interface LiveView {
  /** Oldest first, at most ten minutes. */
  readonly history: readonly Figures[]
  /** Newest first. */
  readonly closes: readonly EndedStream[]
  /** Newest first. */
  readonly rejections: readonly Rejection[]
  readonly line: Pick<StreamState, 'state' | 'nextRetryAt'>
}

const keptSeconds = 600
const keptCloses = 20

export function openLive(admin: Admin): Live {
  const line = { state: 'connecting', nextRetryAt: null } as const
  const store = createStore<LiveView>({ history: [], closes: [], rejections: [], line })
  const change = (part: Partial<LiveView>) => store.set({ ...store.getSnapshot(), ...part })
  let waiting: Figures[] = []

  const options = { keep: 0, maxRetryMs: 5000, ...(admin.token ? { token: admin.token } : {}) }
  const stream = connect<{ figures: Figures }>(`/admin/live?replay=${keptSeconds}`, options)
  stream.on('figures', ({ data }) => {
    // Events that arrive together, such as the first replay of ten minutes, are drawn together.
    if (waiting.push(data) === 1) setTimeout(take)
  })
  // After a restart the server has lost the seconds before. The figures here stay, and the next event is complete in itself.
  stream.onSync(() => undefined)
  stream.onState(({ state, nextRetryAt }) => change({ line: { state, nextRetryAt } }))

  function take(): void {
    const { history, closes, rejections } = store.getSnapshot()
    const ended = waiting.flatMap((figures) => figures.closes)
    const rejected = waiting.flatMap((figures) => figures.rejections)
    change({
      history: [...history, ...waiting].slice(-keptSeconds),
      closes: [...ended.reverse(), ...closes].slice(0, keptCloses),
      rejections: [...rejected.reverse(), ...rejections].slice(0, keptCloses),
    })
    waiting = []
  }

  return { store, close: () => stream.close() }
}
