import { expect, test } from 'vitest'
import { readText, trackedFiles } from '../support/repository.ts'

/** The rows of the glossary: a word, its meaning, and the words that it replaces. */
const rows = [...readText('ARCHITECTURE.md').matchAll(/^\| \*\*([\w-]+)\*\* \| (.+?) \| (.*?) ?\|$/gm)].map(
  ([, word = '', meaning = '', retired = '']) => ({ word, meaning, retired: retired.split(', ').filter(Boolean) }),
)

// In a pathspec of git, `*` stands for folders too, while `**/` would leave out the files directly in the folder.
const sources = ['packages/*/src/*.ts', 'packages/*/pages/*.ts', 'packages/*/pages/*.tsx']
  .flatMap(trackedFiles)
  .map((file) => ({
    file,
    // To replace in place, or an id in place of an object, is another word.
    text: wordsOf(readText(file)).replaceAll(/\bin (?:[\w']+ ){0,2}place\b/gi, ''),
  }))

const titles = ['packages/*/test/*.ts', 'packages/*/test/*.tsx', 'test/*.ts', 'test/*.tsx']
  .flatMap(trackedFiles)
  .map((file) => ({ file, text: wordsOf(titlesOf(readText(file))) }))

const docs = ['docs/*.md', 'README.md', 'PROTOCOL.md']
  .flatMap(trackedFiles)
  .map((file) => ({ file, text: wordsOf(readText(file)) }))

/** Retired words that some pages of the docs may use, because they mean something else there. */
const otherMeanings = [
  {
    word: 'place',
    pages: /\.md$/,
    reason: 'plain English: the place of a fault in a file, or one thing in place of another',
  },
  { word: 'goodbye', pages: /\/mdns\.md$/, reason: 'RFC 6762, section 10.1: a service that leaves says goodbye' },
]

test('every word of the glossary has one definition', () => {
  expect(rows.length).toBeGreaterThan(15)
  const words = rows.map(({ word }) => word)
  expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([])
  expect(rows.filter(({ meaning }) => meaning.trim() === '')).toEqual([])
})

test('no word is both in use and retired', () => {
  const words = new Set(rows.map(({ word }) => word))
  expect(rows.flatMap(({ retired }) => retired).filter((word) => words.has(word))).toEqual([])
})

test.each(rows.flatMap(({ word, retired }) => retired.map((old) => ({ word, old }))))(
  'the sources, the titles of tests and the docs say "$word", not "$old"',
  ({ old }) => {
    expect(usesOf(old, [...sources, ...titles])).toEqual([])
    const allowed = otherMeanings.filter(({ word }) => word === old)
    const pages = docs.filter(({ file }) => !allowed.some(({ pages }) => pages.test(file)))
    expect(usesOf(old, pages)).toEqual([])
  },
)

test('only a retired word needs an exception in the docs', () => {
  const retired = rows.flatMap((row) => row.retired)
  expect(otherMeanings.filter(({ word }) => !retired.includes(word))).toEqual([])
})

test('the sources include the files directly in src, and the pages, and the docs include all guides', () => {
  const files = sources.map(({ file }) => file)
  expect(files).toContain('packages/hub/src/slice-queue.ts')
  expect(files).toContain('packages/rejoin/pages/dashboard/channels.tsx')
  expect(docs.map(({ file }) => file)).toEqual(
    expect.arrayContaining(['README.md', 'PROTOCOL.md', 'docs/README.md', 'docs/guides/client.md']),
  )
})

test('the titles of tests are those of tests, of groups and of tables, each on its own line', () => {
  const code = "test('one', f)\nf('no title', 1)\ndescribe.skip(\n  `two`, f)\ntest.each(rows)('three %s', f)"
  expect(titlesOf(code).split('\n')).toEqual(['one', '', '', 'two', 'three %s'])
  const files = titles.filter(({ text }) => text.trim() !== '').map(({ file }) => file)
  expect(files).toContain('packages/protocol/test/position-clock.test.ts')
  expect(files).toContain('packages/hub/test/http/adapters/contract.ts')
  expect(files).toContain('test/services/redis/faults.test.ts')
})

/** The titles of the tests in a file, with its line breaks and nothing else: a title stays on its line. */
function titlesOf(code: string): string {
  const title = /(?<=(?:\b(?:describe|test|it)(?:\.\w+)*|\))\(\s*)(['"`])((?:\\.|(?!\1).)*)\1(?=,)|./g
  return code.replaceAll(title, (_match, _quote, text = '') => text)
}

/** The words of a text, also those of its names: `placeKey` is "place Key". */
function wordsOf(text: string): string {
  return text.replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, ' ')
}

function usesOf(word: string, texts: readonly { file: string; text: string }[]): string[] {
  // The words of a phrase may stand on two lines of a comment.
  const phrase = wordsOf(word).replaceAll(' ', '\\s+(?:(?:\\*|//)\\s+)?')
  const uses = new RegExp(`(?<![\\w-])${phrase}s?(?![\\w-])`, 'gi')
  return texts.flatMap(({ file, text }) => [...text.matchAll(uses)].map(({ index }) => at(file, text, index)))
}

function at(file: string, text: string, index: number): string {
  const before = text.slice(0, index).split('\n')
  return `${file}:${before.length} ${text.split('\n')[before.length - 1]?.trim()}`
}
