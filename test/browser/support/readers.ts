import type { ConnectOptions, EventStream, StreamState, SyncRequired, TransportName } from '@rejoin/client'
import type { Page } from 'playwright-core'

/** What the scripts of `page/` give to the page. */
declare global {
  function read(name: string, options?: ConnectOptions): void
  function gotOf(name: string): string[]
  function listen(url: string): void
  var readers: Record<string, { stream: EventStream; states: StreamState[]; gap?: SyncRequired }>
  var natives: { source: EventSource; told: string[] }[]
  var clock: NonNullable<ConnectOptions['clock']> & { advance(ms: number): void }
}

export const transports = ['fetch', 'event-source', 'long-poll'] as const satisfies TransportName[]

/** Waits no longer than a second, so that a test does not wait for the backoff. */
export const hasty: ConnectOptions = { retryMs: 100, maxRetryMs: 1000 }

/** Resolves when the page says so. Asked by a timer: frames, by which Playwright asks, do not come to a hidden tab. */
export async function until<Arg>(page: Page, isSo: (arg: Arg) => unknown, arg?: Arg): Promise<void> {
  await page.waitForFunction(isSo as (arg: unknown) => unknown, arg, { polling: 20 })
}

/** Resolves once the scripts of the page have run. */
export async function visit(page: Page, url: string): Promise<void> {
  await page.goto(url)
  await until(page, () => 'readers' in globalThis || 'natives' in globalThis)
}

/** Opens a reader for each transport, named after it. Resolves when all have a cursor. */
export async function openReaders(page: Page, options: ConnectOptions = hasty): Promise<void> {
  await page.evaluate(
    ([names, options]) => {
      for (const name of names) read(name, { ...options, transports: [name] })
    },
    [transports, options] as const,
  )
  await haveCursor(page)
}

export async function haveCursor(page: Page): Promise<void> {
  await until(page, () => Object.values(readers).every(({ stream }) => stream.cursor))
}

/** Resolves when every reader is connected, and its connection has proved itself. */
export async function areConnected(page: Page): Promise<void> {
  await until(page, () =>
    Object.values(readers).every(({ stream }) => stream.state.state === 'connected' && !stream.state.stale),
  )
}

export async function areIn(page: Page, state: StreamState['state']): Promise<void> {
  await until(page, (state) => Object.values(readers).every(({ stream }) => stream.state.state === state), state)
}

/** Resolves when the readers that hold a stream open have lost it so many times. */
export async function haveLost(page: Page, times: number): Promise<void> {
  await until(
    page,
    (times) =>
      Object.entries(readers).every(
        ([name, { states }]) =>
          name === 'long-poll' || states.filter(({ state }) => state === 'backoff').length >= times,
      ),
    times,
  )
}

/** What each reader got, once all of them have the last event that was published. */
export async function recordsOf(page: Page): Promise<Record<string, string[]>> {
  await until(page, () => Object.keys(readers).every((name) => gotOf(name).at(-1) === 'end'))
  return page.evaluate(() => Object.fromEntries(Object.keys(readers).map((name) => [name, gotOf(name)])))
}

/** The same for each transport. */
export function each<Value>(value: Value): Record<string, Value> {
  return Object.fromEntries(transports.map((name) => [name, value]))
}

/** How many connections each reader has made since the page was loaded. */
export function connectionsOf(page: Page): Promise<Record<string, number>> {
  return page.evaluate(() => {
    const count = (states: StreamState[]) =>
      states.filter(({ state }, index) => state === 'connecting' && states[index - 1]?.state !== 'connecting').length
    return Object.fromEntries(Object.entries(readers).map(([name, { states }]) => [name, count(states)]))
  })
}
