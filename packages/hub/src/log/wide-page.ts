import type { Position } from '@rejoin/protocol'
import { mergePages, type PartRead } from './merged-page.ts'
import { addLoss, type Lost, type NameRead, type PageRange } from './name-read.ts'

/**
 * One page of more channels than can be read at once. They are added some at a time, and the end of the page moves closer as
 * it fills: of most channels nothing is read then. It takes no more memory than a page, however many there are.
 */
export interface WidePage {
  /** Behind this place nothing is needed any more. */
  readonly through: Position
  /** Events to read of one channel, when so many are read before they are added. */
  share(channels: number): number
  add(reads: readonly NameRead[]): void
  /** What all that was added amounts to. */
  result(): NameRead
}

export function createWidePage({ through, limit }: PageRange): WidePage {
  let page: PartRead = { events: [], through }
  let lost: Lost | undefined
  return {
    get through() {
      return page.through
    },
    // A page of each would be far more than the one page that is wanted; one event of each might end it too soon.
    share: (channels) => Math.max(1, Math.min(limit.events, Math.ceil((4 * limit.events) / Math.max(1, channels)))),
    add(reads) {
      for (const read of reads) if ('wholeAfter' in read) lost = addLoss(lost, read)
      if (lost) return
      const { events, completeThrough } = mergePages([page, ...(reads as PartRead[])], { through: page.through, limit })
      page = { events, through: completeThrough }
    },
    result: () => lost ?? page,
  }
}
