import type { Site } from './site.ts'

/**
 * Publishes numbers, of two types in turn, at a steady pace. While the hub is down it tries the same number again, so that
 * what it has published is what the hub has acknowledged.
 */
export function startPublishing(site: Site, eventsPerSecond = 150): NumberPublisher {
  const published: { n: string; id: string }[] = []
  const waiting = new Set<() => void>()
  const started = performance.now()
  let stopped = false
  const running = run()

  async function run(): Promise<void> {
    while (!stopped) {
      const due = ((performance.now() - started) * eventsPerSecond) / 1000
      while (published.length < due && !stopped && (await publish(String(published.length)))) notify()
      await new Promise((resolve) => setTimeout(resolve, 1000 / eventsPerSecond))
    }
  }

  async function publish(n: string): Promise<boolean> {
    const type = published.length % 2 === 0 ? 'message' : 'step'
    try {
      // Under a key, because one that failed while the hub closed may be there all the same.
      const { id } = await site.hub.publish('numbers', { type, text: n }, { idempotencyKey: n })
      published.push({ n, id })
      return true
    } catch {
      // The hub is closed, and another is about to take its place.
      return false
    }
  }

  function notify(): void {
    for (const check of waiting) check()
  }

  return {
    published,
    more: (count) =>
      new Promise((resolve) => {
        const goal = published.length + count
        const check = () => {
          if (published.length < goal) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    async finish() {
      stopped = true
      await running
      while (!(await publish('end'))) await new Promise((resolve) => setTimeout(resolve, 10))
      return published.map(({ n }) => n)
    },
  }
}

export interface NumberPublisher {
  /** What the hub has acknowledged, in order. */
  readonly published: readonly { readonly n: string; readonly id: string }[]
  /** Resolves when so many more have been published. */
  more(count: number): Promise<void>
  /** Publishes `end` as the last, and gives everything that was published. */
  finish(): Promise<string[]>
}
