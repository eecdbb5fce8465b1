import { setTimeout } from 'node:timers/promises'
import { RejoinError } from '@rejoin/protocol'
import { measureOwnLoad, type OwnLoad } from './own-load.ts'
import { partOf, type StormPlan, shareOf } from './plan.ts'
import { type PublishBatch, type Published, publishAtRate } from './publishing.ts'
import { chooseAtRandom } from './random-choice.ts'
import { createStormReader, type StormReader, type Trouble } from './reader.ts'
import { type Failure, reportOf, type StormReport } from './report.ts'
import { createTally, type Faults, type Tally, type TimesSummary } from './tally.ts'

/**
 * Loads a hub with readers that are cut and return, and checks the events of each reader. Publishing starts after the readers
 * have connected, so each is owed every event of its subscription. When the hub takes no more events, the storm ends early, and
 * its report has the reason (`failure`). Rejects when the storm cannot begin.
 */
export async function runStorm(plan: StormPlan, options: StormOptions): Promise<StormReport> {
  const startedAt = performance.now()
  const published: Published = { sent: 0, confirmed: 0 }
  const tally = createTally()
  const meter = measureOwnLoad()
  const stopping = new AbortController()
  const first = { onTrouble: (_trouble: Trouble): void => undefined, onConnected: (): void => undefined }
  const readers = Array.from({ length: plan.readers }, (_, number) =>
    createStormReader({
      number,
      published,
      tally,
      share: shareOf(plan, number),
      size: plan.size,
      awayMs: plan.awayMs,
      url: streamUrl(options.url, plan, number),
      headers: headersOf(options.token),
      onTrouble: (trouble) => number === 0 && first.onTrouble(trouble),
      onConnected: () => number === 0 && first.onConnected(),
    }),
  )
  const stage = { name: 'connecting' as StageName, since: performance.now() }
  const enter = (name: StageName) => Object.assign(stage, { name, since: performance.now() })
  const showing = setInterval(show, showEveryMs)
  const end = AbortSignal.any([stopping.signal, ...(options.signal ? [options.signal] : [])])

  function show(): void {
    options.onProgress?.({
      stage: stage.name,
      stageMs: performance.now() - stage.since,
      connected: readers.filter(({ state }) => state === 'connected').length,
      published: published.confirmed,
      delivered: tally.delivered,
      cuts: tally.cuts,
      returns: tally.returns,
      gaps: tally.gaps,
      faults: faultsNow(readers, tally),
      delayMs: tally.delay.summary(),
      catchUpMs: tally.catchUp.summary(),
      own: meter.load(),
    })
  }

  try {
    await new Promise<void>((resolve, reject) => {
      first.onConnected = resolve
      first.onTrouble = (trouble) => reject(troubleError(trouble, options))
      end.addEventListener('abort', () => resolve(), { once: true })
      readers[0]?.connect()
    })
    await connectAll(readers, plan, end)
    enter('storm')
    const cutting = cutAgainAndAgain(readers, plan, end)
    const failure = await publishAtRate(plan, published, options.publish, end).then(() => undefined, failureOf)
    // The answer to the last batch may come later than planned, but its events were due before.
    const publishMs = Math.min(plan.forMs, Math.round(performance.now() - stage.since))
    stopping.abort()
    await cutting
    enter('settling')
    await settle(readers, published, tally, plan.patienceMs)
    show()
    const ms = Math.round(performance.now() - startedAt)
    return reportOf({
      url: options.url.href.replace(/\/$/, ''),
      plan,
      readers,
      published,
      tally,
      failure,
      own: meter.load(),
      publishMs,
      ms,
    })
  } finally {
    stopping.abort()
    clearInterval(showing)
    meter.stop()
    for (const reader of readers) reader.stop()
  }
}

export interface StormOptions {
  /** The address of the hub. */
  readonly url: URL
  readonly token?: string | undefined
  readonly publish: PublishBatch
  /** Ends the storm early: no more events and no more cuts. The published events are checked all the same. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: StormProgress) => void) | undefined
}

export type StageName = 'connecting' | 'storm' | 'settling'

export interface StormProgress {
  readonly stage: StageName
  readonly stageMs: number
  readonly connected: number
  readonly published: number
  readonly delivered: number
  readonly cuts: number
  readonly returns: number
  /** The number of `sync-required` frames. */
  readonly gaps: number
  /** The faults so far. A missing event may still come, out of order. */
  readonly faults: Faults
  readonly delayMs: TimesSummary | undefined
  readonly catchUpMs: TimesSummary | undefined
  readonly own: OwnLoad
}

const showEveryMs = 250

function streamUrl(base: URL, plan: StormPlan, reader: number): URL {
  const url = new URL(`${base.href.replace(/\/$/, '')}/events`)
  url.searchParams.append('channel', shareOf(plan, reader).selector)
  // Without a `clientId`, the hub would take readers with the same cursor for one client that returns too often.
  url.searchParams.append('clientId', `${plan.prefix}/reader-${reader}`)
  return url
}

function headersOf(token: string | undefined): Record<string, string> {
  return {
    Accept: 'text/event-stream',
    'Accept-Encoding': 'identity',
    'Cache-Control': 'no-cache',
    'User-Agent': 'rejoin-storm',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
  }
}

/** Why the first reader got no stream. It connects alone, so that a storm of a thousand does not begin in vain. */
function troubleError(trouble: Trouble, { url }: StormOptions): unknown {
  if ('error' in trouble) return trouble.error
  const status = 'head' in trouble ? trouble.head.status : 200
  if (status === 401 || status === 403) {
    return new RejoinError(`${url.host} does not let a reader in (${status}).`, { code: 'unauthorized' })
  }
  if ('closed' in trouble || status >= 500 || status === 429) {
    const why = 'closed' in trouble ? trouble.closed : status
    return new RejoinError(`${url.host} rejects readers now (${why}). Try again later.`, {
      code: 'unreachable',
      retryable: true,
    })
  }
  const why = status === 200 ? 'its stream does not begin with hello' : `it answers ${status} to a reader`
  return new RejoinError(
    `What answers at ${url.origin} is no hub of Rejoin: ${why}. Check the address, and what stands in between: rejoin doctor ${url.href}`,
    { code: 'not-found' },
  )
}

/** Connects the other readers, some at a time. Waits until all are connected, or no more readers get through. */
async function connectAll(
  readers: readonly StormReader[],
  { patienceMs }: StormPlan,
  signal: AbortSignal,
): Promise<void> {
  let begun = 1
  let newest = 0
  let newestAt = performance.now()
  const until = newestAt + patienceMs * mostPatience
  while (!signal.aborted && performance.now() < until) {
    const connected = readers.filter(({ state }) => state === 'connected').length
    if (connected === readers.length) return
    if (connected > newest) {
      newest = connected
      newestAt = performance.now()
    }
    if (performance.now() - newestAt > patienceMs) return
    for (; begun < readers.length && begun < connected + connectingAtOnce; begun += 1) readers[begun]?.connect()
    await setTimeout(lookEveryMs)
  }
}

// Below the backlog of most listening sockets: beyond it, a SYN is dropped, and repeated after a second.
const connectingAtOnce = 100
const lookEveryMs = 10
// Bounds the wait for a hub that makes progress, but too slowly.
const mostPatience = 6

async function cutAgainAndAgain(readers: readonly StormReader[], plan: StormPlan, signal: AbortSignal): Promise<void> {
  const count = partOf(readers.length, plan.cutPercent)
  while (count > 0) {
    await setTimeout(plan.cutEveryMs, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    for (const reader of chooseAtRandom(readers, count)) reader.cut()
  }
}

function failureOf(error: unknown): Failure {
  if (error instanceof RejoinError) return { code: error.code, message: error.message, retryable: error.retryable }
  return { code: 'internal', message: String(error), retryable: false }
}

/** Waits until all readers have all events that the hub confirmed, or no reader gets a new one for `patienceMs`. */
async function settle(
  readers: readonly StormReader[],
  published: Published,
  tally: { readonly delivered: number },
  patienceMs: number,
): Promise<void> {
  for (const reader of readers) reader.hurry()
  let left = [...readers]
  let progress = ''
  let progressAt = performance.now()
  const until = progressAt + patienceMs * mostPatience
  while (performance.now() - progressAt < patienceMs && performance.now() < until) {
    left = left.filter(({ record, share }) => !record.hasReached(share.countOf(published.confirmed)))
    if (left.length === 0) return
    const now = `${left.length} ${tally.delivered}`
    if (now !== progress) progressAt = performance.now()
    progress = now
    await setTimeout(lookEveryMs)
  }
}

function faultsNow(readers: readonly StormReader[], { foreign, cursorless }: Tally): Faults {
  const faults = { lost: 0, doubled: 0, disordered: 0, foreign, cursorless }
  for (const { record } of readers) {
    const { lost, doubled, disordered } = record.verdict(0)
    faults.lost += lost
    faults.doubled += doubled
    faults.disordered += disordered
  }
  return faults
}
