import v8 from 'node:v8'

/**
 * Bounds the garbage that V8 keeps. By default V8 lets its heap grow up to four times on a machine with much memory: after a
 * flood of requests an idle process kept 150 MB of garbage around 25 MB of objects.
 *
 * A large heap may grow by 50 % before V8 collects it, a small heap by 200 %. With 50 % at all sizes, V8 collects the heap four
 * times as often while batches of 100 are published over HTTP, and the rate is a quarter lower. With 200 % at all sizes, all
 * attacks of `npm run faults -- hostile` at once take more than the 400 MB that they may. With this choice they took 369 and 382 MB.
 */
export function keepHeapSmall({ getHeapStatistics, setFlagsFromString }: Heap = v8): void {
  let growth = 0
  const choose = () => {
    const { total_heap_size, external_memory } = getHeapStatistics()
    const wanted = total_heap_size + external_memory > smallBytes ? 50 : 200
    if (wanted === growth) return
    growth = wanted
    // V8 reads the flag at the end of each full collection, on Node 20, 22, 24 and 26.
    setFlagsFromString(`--heap-growing-percent=${growth}`)
  }
  choose()
  setInterval(choose, chooseEveryMs).unref()
}

// While batches are published as fast as possible, the heap and its buffers take up to 111 MB with 200 %.
const smallBytes = 128 * 1024 * 1024
// A look takes some 20 µs.
const chooseEveryMs = 100

/** The part of `node:v8` that is used here. */
export interface Heap {
  getHeapStatistics(): { readonly total_heap_size: number; readonly external_memory: number }
  setFlagsFromString(flags: string): void
}
