import { comparePositions, isAfter, latest, origin } from '@rejoin/protocol'
import type { BackPage, TypedPosition } from './contract.ts'

/** Merges the pages of several selectors, read backwards. The merged page reaches back as far as the shortest of them. */
export function mergeBackPages(pages: readonly BackPage[]): BackPage {
  const [only] = pages
  if (only && pages.length === 1) return only
  const completeAfter = pages.reduce((position, page) => latest(position, page.completeAfter), origin)
  const wholeAfter = pages.reduce((position, page) => latest(position, page.wholeAfter), origin)
  const positions: TypedPosition[] = []
  for (const page of pages)
    for (const stamp of page.positions) if (isAfter(stamp.position, completeAfter)) positions.push(stamp)
  positions.sort((a, b) => comparePositions(b.position, a.position))
  return { positions, completeAfter, wholeAfter }
}

/** How many events to read of each selector, so that a page of a hundred selectors takes a millisecond or two. */
export function shareOfBackPage(most: number, selectors: number): number {
  return Math.min(most, Math.max(16, Math.ceil((4 * most) / selectors)))
}
