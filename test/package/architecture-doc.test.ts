import { describe, expect, test } from 'vitest'
import { packageFolders, readText, trackedFiles } from '../support/repository.ts'

const text = readText('ARCHITECTURE.md')

test('every file that ARCHITECTURE.md names is there', () => {
  const files = trackedFiles('*.ts')
  const named = [...text.matchAll(/[`"]([\w/.-]+\.ts)[`"]/g)].map(([, file = '']) => file)
  expect(named.length).toBeGreaterThan(30)
  expect(named.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`)))).toEqual([])
})

describe('the tree of ARCHITECTURE.md', () => {
  const named = foldersOf(text.match(/^```\n(\S+\/ [\s\S]+?)^```/m)?.[1] ?? '')
  const folders = [...new Set(trackedFiles().flatMap(parentsOf))]

  test('has a line for every folder at the top, of test, and of the sources down to the second level', () => {
    const isAtTheseLevels = (folder: string) =>
      /^[^/]+$|^test\/[^/]+$|^packages\/[^/]+\/src(?:\/[^/]+){0,2}$/.test(folder)
    const wanted = folders.filter(isAtTheseLevels)
    expect(wanted).toEqual(expect.arrayContaining(packageFolders.map((folder) => `packages/${folder}/src`)))
    expect(wanted.filter((folder) => !named.includes(folder))).toEqual([])
  })

  test('names no folder twice', () => {
    expect(named.filter((folder, index) => named.indexOf(folder) !== index)).toEqual([])
  })

  test('names no folder that does not exist', () => {
    expect(named.filter((folder) => !folders.includes(folder))).toEqual([])
  })
})

/** The paths of the folders in a tree: one folder per line, two spaces per level, and then what is in it. */
function foldersOf(tree: string): string[] {
  const above: string[] = []
  return tree
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [, indent = '', folder = line] = line.match(/^((?: {2})*)(\S+)\/ +\S/) ?? []
      above.length = indent.length / 2
      above.push(folder)
      return above.join('/')
    })
}

function parentsOf(file: string): string[] {
  const names = file.split('/').slice(0, -1)
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
}
