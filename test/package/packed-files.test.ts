import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { root } from '../support/paths.ts'
import { packageFolders, readJson, readText } from '../support/repository.ts'

interface Manifest {
  name: string
  description?: string
  license?: string
  keywords?: string[]
  repository?: { url: string; directory: string }
  exports: Record<string, Record<string, string> | string>
  bin?: Record<string, string>
  scripts?: Record<string, string>
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

let packed: Map<string, string[]>
beforeAll(async () => {
  packed = await packedFiles()
})

describe.each(packageFolders)('packages/%s, packed', (folder) => {
  const filesOf = () => packed.get(manifestOf(folder).name) ?? []

  test('holds what runs, its sources and its papers, and nothing else', () => {
    const expected = /^(?:(?:dist|src|bin)\/.+|package\.json|openapi\.json|README\.md|LICENSE)$/
    const leftover = /\.test\.|\.tsbuildinfo$/
    expect(filesOf().filter((file) => !expected.test(file) || leftover.test(file))).toEqual([])
  })

  test('holds every file that its manifest names', () => {
    const { exports, bin = {} } = manifestOf(folder)
    const entries = Object.values(exports).flatMap((entry) =>
      typeof entry === 'string' ? entry : Object.values(entry),
    )
    const named = [...entries, ...Object.values(bin)]
    expect(named.filter((path) => !filesOf().includes(path.replace('./', '')))).toEqual([])
  })

  test('holds a README that says what to import, and that there are ES modules only', () => {
    expect(filesOf()).toEqual(expect.arrayContaining(['README.md', 'LICENSE']))
    const readme = readText(`packages/${folder}/README.md`)
    expect(readme).toContain(`# ${manifestOf(folder).name}\n`)
    expect(readme).toContain('ESM only')
  })

  test('is found by a search and by its source, and shows its package.json to tools', () => {
    const { description, license, keywords, repository, exports } = manifestOf(folder)
    expect({ description, license, keywords }).toEqual({
      ...{ description: expect.stringMatching(/\.$/), license: 'MIT' },
      keywords: expect.arrayContaining(['server-sent-events']),
    })
    expect(repository).toMatchObject({ url: expect.stringMatching(/\.git$/), directory: `packages/${folder}` })
    expect(exports['./package.json']).toBe('./package.json')
  })

  test('is built before it is packed', () => {
    expect(manifestOf(folder).scripts?.prepack).toBe(`node ../../scripts/build.js packages/${folder}`)
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
  ['mdns', ['@rejoin/hub', '@rejoin/protocol', 'multicast-dns']],
  ['doctor', ['@rejoin/protocol']],
  ['storm', ['@rejoin/protocol']],
])('packages/%s brings along %j and nothing else', (folder, dependencies) => {
  const manifest = manifestOf(folder)
  expect(Object.keys(manifest.dependencies ?? {})).toEqual(dependencies)
  expect(Object.keys(manifest.optionalDependencies ?? {})).toEqual([])
})

test.each([
  ['protocol', []],
  ['client', ['@types/react', 'react', 'vue']],
  // The frameworks are there for the types of their requests, the clients of Redis for `redisLog`.
  ['hub', ['@types/express', 'fastify', 'hono', 'ioredis', 'lmdb', 'redis']],
])('packages/%s works with %j when its user has it, and installs without', (folder, peers) => {
  const { peerDependencies = {}, peerDependenciesMeta = {} } = manifestOf(folder)
  expect(Object.keys(peerDependencies)).toEqual(peers)
  expect(Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional)).toEqual([])
})

/** The files of each package, by its name. npm takes a second to start, so it is asked once. */
async function packedFiles(): Promise<Map<string, string[]>> {
  const workspaces = packageFolders.map((folder) => `--workspace=packages/${folder}`)
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', ...workspaces]
  const { stdout } = await promisify(execFile)('npm', args, { cwd: root })
  const listed = JSON.parse(stdout) as { name: string; files: { path: string }[] }[]
  return new Map(listed.map(({ name, files }) => [name, files.map(({ path }) => path)]))
}

function manifestOf(folder: string): Manifest {
  return readJson<Manifest>(`packages/${folder}/package.json`)
}
