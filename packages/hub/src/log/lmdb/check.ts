import { join } from 'node:path'
import { readRoot, refuseFile } from './file.ts'
import { judgeInChild } from './judge.ts'
import { checkPages } from './pages.ts'
import { dataName, type Store } from './store.ts'

/**
 * Rejects a file that LMDB would misread, or that the next write would damage further. Its pages are followed without LMDB;
 * where there are too many for that, LMDB does it in a process of its own.
 *
 * @param maxPages - how many pages are followed here
 */
export async function checkFile(store: Pick<Store, 'directory' | 'isWhole'>, maxPages = pagesAtOpen): Promise<void> {
  const path = join(store.directory, dataName)
  const root = await readRoot(path)
  if (!root) return
  const verdict = checkPages(path, root, maxPages)
  if (verdict.kind === 'damaged') refuseFile(path, `is damaged: ${verdict.how}. A write would lose more of it`)
  if (verdict.kind === 'whole' || root.main.entries > countedAtOpen) return
  const isWhole = await judgeInChild(path)
  if (isWhole === 'damaged' || (isWhole === undefined && !store.isWhole())) {
    refuseFile(path, 'is damaged: LMDB cannot read all of it. A write would lose more of it')
  }
}

// A process of its own takes some 0.1 s to start. With more pages than these, it is the faster of the two.
const pagesAtOpen = 20_000

// A million channels with an event each are two million, and 0.25 s.
const countedAtOpen = 5_000_000
