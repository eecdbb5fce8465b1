import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** Tabs that share what the tabs of a browser share: channels, which Node has, and locks, which are kept here. */
export function openBrowser(): Browser {
  const tabs = new Set<OpenTab>()
  // By key: who holds the lock, and who waits for it, in turn.
  const queues = new Map<string, Claim[]>()

  function claim(key: string, claimed: Claim): void {
    const queue = queues.get(key) ?? []
    const [holder, ...waiting] = queue
    if (claimed.mode === 'ifAvailable' && holder) {
      claimed.refuse()
      return
    }
    const isStolen = claimed.mode === 'steal' && holder
    queues.set(key, isStolen ? [claimed, ...waiting] : [...queue, claimed])
    if (isStolen) holder.lose()
    if (isStolen || !holder) claimed.grant()
  }

  function free(isFreed: (claimed: Claim) => boolean): void {
    for (const [key, queue] of queues) {
      const left = queue.filter((claimed) => !isFreed(claimed))
      queues.set(key, left)
      if (left[0] !== queue[0]) left[0]?.grant()
    }
  }

  function open(url: string, options: TabOptions = {}): Tab {
    const { from = null, name = 'user' } = options
    const worker = new Worker(new URL('./tab.js', import.meta.url), { workerData: { url, from, name } })
    const exited = once(worker, 'exit')
    const answers: ((answer: TabView) => void)[] = []
    const tab: OpenTab = {
      state: 'connecting',
      look() {
        worker.postMessage({ ask: true })
        return new Promise((resolve) => answers.push(resolve))
      },
      hang: (hangMs) => worker.postMessage({ hangMs }),
      stick: () => worker.postMessage({ stick: true }),
      close: () => worker.postMessage({ close: true }),
      async kill() {
        tabs.delete(tab)
        await worker.terminate()
        await exited
        free((claimed) => claimed.tab === tab)
      },
      leads: () => [...queues].some(([key, [first]]) => !key.endsWith(' next') && first?.tab === tab),
    }
    worker.on('message', (told: Told) => {
      if (told.lock && told.key) {
        const { lock: id } = told
        claim(told.key, {
          tab,
          id,
          mode: told.steal ? 'steal' : told.ifAvailable ? 'ifAvailable' : undefined,
          grant: () => worker.postMessage({ granted: id }),
          refuse: () => worker.postMessage({ refused: id }),
          lose: () => worker.postMessage({ stolen: id }),
        })
      } else if (told.free) free((claimed) => claimed.tab === tab && claimed.id === told.free)
      else if (told.numbers) answers.shift()?.(told as TabView)
      else if (typeof told.state === 'string') tab.state = told.state
    })
    tabs.add(tab)
    return tab
  }

  return {
    open,
    close: async () => {
      await Promise.all([...tabs].map((tab) => tab.kill()))
    },
  }
}

export interface Browser {
  open(url: string, options?: TabOptions): Tab
  close(): Promise<void>
}

export interface TabOptions {
  readonly from?: string | null
  /** Whom the tab reads for. */
  readonly name?: string
}

export interface Tab {
  readonly state: string
  look(): Promise<TabView>
  /** Nothing runs in the tab for so long. */
  hang(ms: number): void
  /** Its handler takes the next event, and never ends. */
  stick(): void
  /** Closes its stream in order. */
  close(): void
  /** Ends it in the middle of whatever it does. */
  kill(): Promise<void>
  leads(): boolean
}

export interface TabView {
  /** What the handler was given, in order. */
  readonly numbers: readonly number[]
  readonly gaps: readonly string[]
}

type OpenTab = { -readonly [Field in keyof Tab]: Tab[Field] }

interface Claim {
  readonly tab: Tab
  readonly id: number
  readonly mode: 'steal' | 'ifAvailable' | undefined
  grant(): void
  refuse(): void
  lose(): void
}

interface Told extends Partial<TabView> {
  readonly lock?: number
  readonly key?: string
  readonly steal?: boolean
  readonly ifAvailable?: boolean
  readonly free?: number
  readonly state?: unknown
}
