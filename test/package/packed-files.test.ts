import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { packageFolders, readJson, root } from './repository.ts'

interface Manifest {
  exports: Record<string, Record<string, string>>
  bin?: Record<string, string>
  scripts?: Record<string, string>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

describe.each(packageFolders)('packages/%s, packed', (folder) => {
  let files: string[]
  beforeAll(async () => {
    files = await packedFiles(folder)
  })

  test('holds what runs, its sources and its papers, and nothing else', () => {
    const expected = /^(?:(?:dist|src|bin)\/.+|package\.json|README\.md|LICENSE)$/
    const leftover = /\.test\.|\.tsbuildinfo$/
    expect(files.filter((file) => !expected.test(file) || leftover.test(file))).toEqual([])
  })

  test('holds every file that its manifest names', () => {
    const { exports, bin = {} } = manifestOf(folder)
    const named = [...Object.values(exports).flatMap((entry) => Object.values(entry)), ...Object.values(bin)]
    expect(named.filter((path) => !files.includes(path.replace('./', '')))).toEqual([])
  })

  test('runs nothing when it is installed', () => {
    const scripts = Object.keys(manifestOf(folder).scripts ?? {})
    expect(scripts.filter((name) => /^(?:pre|post)?(?:install|prepare)$/.test(name))).toEqual([])
  })
})

test.each([
  ['protocol', []],
  ['client', ['@rejoin/protocol']],
  ['hub', ['@rejoin/protocol']],
])('packages/%s brings along %j and nothing else', (folder, dependencies) => {
  const manifest = manifestOf(folder)
  expect(Object.keys(manifest.dependencies ?? {})).toEqual(dependencies)
  expect(Object.keys(manifest.optionalDependencies ?? {})).toEqual([])
})

test.each([
  ['protocol', []],
  ['client', []],
  // The frameworks are there for the types of their requests.
  ['hub', ['@types/express', 'fastify', 'hono', 'lmdb']],
])('packages/%s works with %j when its user has it, and installs without', (folder, peers) => {
  const { peerDependencies = {}, peerDependenciesMeta = {} } = manifestOf(folder)
  expect(Object.keys(peerDependencies)).toEqual(peers)
  expect(Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional)).toEqual([])
})

async function packedFiles(folder: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json'], {
    cwd: `${root}packages/${folder}`,
  })
  const [packed] = JSON.parse(stdout) as [{ files: { path: string }[] }]
  return packed.files.map(({ path }) => path)
}

function manifestOf(folder: string): Manifest {
  return readJson<Manifest>(`packages/${folder}/package.json`)
}
