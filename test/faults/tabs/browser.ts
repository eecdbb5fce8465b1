import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** Tabs that share what the tabs of a browser share: channels, which Node has, and locks, which are kept here. */
export function openBrowser(): Browser {
  const tabs = new Set<OpenTab>()
  // By key: who holds the lock, and who waits for it, in turn.
  const queues = new Map<string, Claim[]>()

  function claim(key: string, claimed: Claim): void {
    const queue = queues.get(key) ?? []
    queues.set(key, [...queue, claimed])
    if (queue.length === 0) claimed.grant()
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
      close: () => worker.postMessage({ close: true }),
      async kill() {
        tabs.delete(tab)
        await worker.terminate()
        await exited
        free((claimed) => claimed.tab === tab)
      },
      leads: () => [...queues.values()].some(([first]) => first?.tab === tab),
    }
    worker.on('message', (told: Told) => {
      if (told.lock && told.key) {
        const { lock: id } = told
        claim(told.key, { tab, id, grant: () => worker.postMessage({ granted: id }) })
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
  grant(): void
}

interface Told extends Partial<TabView> {
  readonly lock?: number
  readonly key?: string
  readonly free?: number
  readonly state?: unknown
}
