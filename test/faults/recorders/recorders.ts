import type { PublishedEvent, RecordedReader } from './receipts.ts'

export { type ClientReaderOptions, openClientReader } from './client-reader.ts'
export {
  batchThroughHttp,
  openPublisher,
  type PublisherOptions,
  type RecordedPublisher,
  type Send,
  throughHttp,
  throughHub,
} from './publisher.ts'
export type { PublishedEvent, RecordedReader } from './receipts.ts'
export { openStrictReader, type StrictReaderOptions } from './strict-reader.ts'

/**
 * Waits until every reader has those of these events that it reads, or was told that it cannot. Resolves after `limitMs` in any case: who lacks
 * something then is for the checker to say.
 */
export async function waitForAll(
  readers: readonly RecordedReader[],
  events: readonly PublishedEvent[],
  limitMs: number,
): Promise<void> {
  const all = readers.flatMap(({ receipts }) =>
    events.filter(({ channel }) => receipts.channels.includes(channel)).map((event) => receipts.has(event)),
  )
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  await Promise.race([Promise.all(all), limit])
  clearTimeout(timer)
}
