import { expect, test } from 'vitest'
import { readText, trackedFiles } from '../support/repository.ts'

// Written so that this file does not find itself.
const forbidden: [what: string, pattern: RegExp][] = [
  ['a design file that is not in this repository', /\b(?:DESIGN|REQUIREMENTS|RELIABILITY|STYLE|CLIENT)[.]md\b/],
  ['a path of the machine it was written on', /(?<![\w.:/@-])[/](?:work|root|home|Users)[/]/],
  ['a package registry', /\bregistry[.](?:npmjs|yarnpkg|npmmirror)\b|\bpkg[.]dev\b/],
]

test.each(forbidden)('no file mentions %s', (_what, pattern) => {
  const found = trackedFiles().flatMap((file) => {
    const lines = readText(file).split('\n')
    return lines.flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []))
  })
  expect(found).toEqual([])
})
