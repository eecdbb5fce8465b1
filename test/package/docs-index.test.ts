import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../support/paths.ts'
import { readText, trackedFiles } from '../support/repository.ts'

const index = 'docs/README.md'

/** The pages of the list, `- [title](path): one line`. The table of questions may name a page once more. */
const listed = [...readText(index).matchAll(/^- \[.+?\]\((.+?)\): \S/gm)].map(([, path = '']) => join('docs', path))

test('a reader of docs/README.md finds every page of docs, with a line that says what is in it', () => {
  const pages = trackedFiles('docs/*.md').filter((page) => page !== index)
  expect(pages.length).toBeGreaterThan(50)
  expect(pages.filter((page) => !listed.includes(page))).toEqual([])
})

test('docs/README.md lists no page twice', () => {
  expect(listed.filter((page, position) => listed.indexOf(page) !== position)).toEqual([])
})

test('every page that docs/README.md lists is there', () => {
  expect(listed.filter((page) => !existsSync(join(root, page)))).toEqual([])
})
