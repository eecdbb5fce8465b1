import { expect, test } from 'vitest'
import { readText, trackedFiles } from '../support/repository.ts'

/** The rows of the glossary: a word, its meaning, and the words that it replaces. */
const rows = [...readText('ARCHITECTURE.md').matchAll(/^\| \*\*([\w-]+)\*\* \| (.+?) \| (.*?) ?\|$/gm)].map(
  ([, word = '', meaning = '', retired = '']) => ({ word, meaning, retired: retired.split(', ').filter(Boolean) }),
)

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
  'the sources say "$word", not "$old"',
  ({ old }) => {
    const uses = new RegExp(`(?<![\\w-])${old.replaceAll(' ', '\\s+(?:\\*\\s+)?')}s?(?![\\w-])`, 'i')
    const found = trackedFiles('packages/*/src/**/*.ts')
      .flatMap((file) =>
        readText(file)
          .split('\n')
          .map((line, index) => ({ at: `${file}:${index + 1}`, line: line.trim() })),
      )
      .filter(({ line }) => uses.test(line.replaceAll(/\bin (?:[\w']+ ){0,2}place\b/gi, '')))
    expect(found).toEqual([])
  },
)
