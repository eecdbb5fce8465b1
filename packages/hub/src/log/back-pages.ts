import { comparePositions, isAfter, latest, origin } from '@rejoin/protocol'
import type { BackPage, TypedPlace } from './contract.ts'

/** One page of what several names have, read backwards: it begins where the first of them does. */
export function mergeBackPages(pages: readonly BackPage[]): BackPage {
  const [only] = pages
  if (only && pages.length === 1) return only
  const completeAfter = pages.reduce((place, page) => latest(place, page.completeAfter), origin)
  const wholeAfter = pages.reduce((place, page) => latest(place, page.wholeAfter), origin)
  const places: TypedPlace[] = []
  for (const page of pages)
    for (const place of page.places) if (isAfter(place.position, completeAfter)) places.push(place)
  places.sort((a, b) => comparePositions(b.position, a.position))
  return { places, completeAfter, wholeAfter }
}

/** Of how many events of each name a page is made, so that those of a hundred names are read in a millisecond or two. */
export function shareOfBackPage(most: number, names: number): number {
  return Math.min(most, Math.max(16, Math.ceil((4 * most) / names)))
}
