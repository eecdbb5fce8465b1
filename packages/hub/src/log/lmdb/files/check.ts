import { join } from 'node:path'
import { judgeInChild } from './judge.ts'
import { checkPages } from './pages.ts'
import { readRoot, rejectFile } from './roots.ts'
import { dataName, type Store } from './store.ts'

/**
 * Rejects a file that LMDB would misread, or that the next write would damage further. The check follows the pages of the file
 * without LMDB. When there are too many pages for that, LMDB reads the file in a process of its own.
 *
 * @param maxPages - how many pages this process follows
 */
export async function checkFile(store: Pick<Store, 'directory' | 'isWhole'>, maxPages = pagesAtOpen): Promise<void> {
  const path = join(store.directory, dataName)
  const root = await readRoot(path)
  if (!root) return
  const verdict = checkPages(path, root, maxPages)
  if (verdict.kind === 'damaged') rejectFile(path, `is damaged: ${verdict.how}. A write would lose more of it`)
  if (verdict.kind === 'whole' || root.main.entries > countedAtOpen) return
  const isWhole = await judgeInChild(path)
  if (isWhole === 'damaged' || (isWhole === undefined && !store.isWhole())) {
    rejectFile(path, 'is damaged: LMDB cannot read all of it. A write would lose more of it')
  }
}

// Another process takes some 0.1 s to start. With more pages than these, it is still the faster way.
const pagesAtOpen = 20_000

// A million channels with one event each have two million entries, and take 0.25 s.
const countedAtOpen = 5_000_000
