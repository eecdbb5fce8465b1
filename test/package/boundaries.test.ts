import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readJson, trackedFiles } from '../support/repository.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))

const forbidden = [
  { from: 'packages/protocol/src/encode.ts', imports: 'node:buffer', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/encode.ts', imports: 'buffer', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/encode.ts', imports: 'ulid', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/codecs/ulid.ts', imports: '@rejoin/hub', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/encode.ts', imports: '../../hub/src/hub/hub.ts', advice: 'imports only its own' },

  { from: 'packages/client/src/connection.ts', imports: 'node:http', advice: 'Use what the web platform has' },
  { from: 'packages/client/src/connection.ts', imports: 'eventsource-parser', advice: 'Use what the web platform has' },
  { from: 'packages/client/src/connection.ts', imports: '@rejoin/hub', advice: 'belongs in the protocol package' },
  {
    from: 'packages/client/src/transports/fetch.ts',
    imports: '@rejoin/hub/testing',
    advice: 'belongs in the protocol',
  },
  { from: 'packages/client/src/connection.ts', imports: '../../protocol/src/parse.ts', advice: 'and @rejoin/protocol' },
  { from: 'packages/client/src/stream.ts', imports: './bindings/frame.ts', advice: 'knows no user interface' },
  { from: 'packages/client/src/transports/fetch.ts', imports: '../react/hooks.ts', advice: 'knows no user interface' },
  { from: 'packages/client/src/stream.ts', imports: 'react', advice: 'knows no user interface' },
  { from: 'packages/client/src/stream.ts', imports: './testing/attach-to.ts', advice: 'and no test' },
  { from: 'packages/client/src/react/hooks.ts', imports: '../testing/attach-to.ts', advice: 'into bindings/' },
  {
    from: 'packages/client/src/testing/attach-to.ts',
    imports: '@rejoin/hub/testing',
    advice: 'Take the hub as an argument',
  },
  { from: 'packages/client/src/bindings/status.ts', imports: 'react', advice: 'what all frameworks share' },
  { from: 'packages/client/src/bindings/status.ts', imports: '../vue/composables.ts', advice: 'what all frameworks' },
  { from: 'packages/client/src/react/hooks.ts', imports: 'vue', advice: 'into bindings/' },
  { from: 'packages/client/src/vue/composables.ts', imports: '../react/hooks.ts', advice: 'into bindings/' },
  { from: 'packages/client/src/redux/redux-stream.ts', imports: 'redux', advice: 'Use what the web platform has' },

  {
    from: 'packages/client/src/element/rejoin-status.ts',
    imports: '../react/hooks.ts',
    advice: 'into bindings/',
  },
  {
    from: 'packages/client/src/testing/attach-to.ts',
    imports: '../react/hooks.ts',
    advice: 'for every framework',
  },

  { from: 'packages/hub/src/environment.ts', imports: '@rejoin/client', advice: 'Take the rest as an argument' },
  { from: 'packages/hub/src/environment.ts', imports: 'rejoin', advice: 'Take the rest as an argument' },
  { from: 'packages/hub/src/testing/index.ts', imports: 'vitest', advice: 'Take the rest as an argument' },
  { from: 'packages/hub/src/environment.ts', imports: '../../rejoin/src/cli/main.ts', advice: 'Take the rest' },

  { from: 'packages/hub/src/log/memory/log.ts', imports: '../../hub/hub.ts', advice: 'a duty of the log contract' },
  { from: 'packages/hub/src/log/memory/log.ts', imports: '../../http/node.ts', advice: 'a duty of the log contract' },
  {
    from: 'packages/hub/src/log/redis/tail.ts',
    imports: '../../hub/live/live.ts',
    advice: 'a duty of the log contract',
  },
  { from: 'packages/hub/src/log/redis/tail.ts', imports: 'ioredis', advice: 'a duty of the log contract' },

  { from: 'packages/hub/src/hub/hub.ts', imports: '../http/response-sink.ts', advice: 'the sink or the callback' },
  { from: 'packages/hub/src/hub/read/session.ts', imports: '../../http/node.ts', advice: 'the sink or the callback' },
  { from: 'packages/hub/src/hub/read/session.ts', imports: '../../log/memory/log.ts', advice: 'not a concrete log' },
  { from: 'packages/hub/src/hub/read/session.ts', imports: '../../log/lmdb/log.ts', advice: 'not a concrete log' },
  { from: 'packages/hub/src/hub/hub.ts', imports: '../log/redis/log.ts', advice: 'not a concrete log' },
  { from: 'packages/hub/src/hub/hub.ts', imports: '@rejoin/client', advice: 'other packages than @rejoin/protocol' },

  { from: 'packages/hub/src/http/node.ts', imports: '../log/memory/log.ts', advice: 'the caller has chosen' },
  { from: 'packages/hub/src/http/node.ts', imports: 'express', advice: 'no other package than @rejoin/protocol' },

  {
    from: 'packages/hub/src/operations/index.ts',
    imports: '../log/memory/log.ts',
    advice: 'on any log',
  },
  {
    from: 'packages/hub/src/testing/index.ts',
    imports: '../operations/index.ts',
    advice: 'stands on log/, hub/ and http/',
  },

  { from: 'packages/mdns/src/mdns.ts', imports: '@rejoin/client', advice: 'A source stands on the hub' },
  { from: 'packages/mdns/src/mdns.ts', imports: 'bonjour-service', advice: 'A source stands on the hub' },
  { from: 'packages/mdns/src/mdns.ts', imports: '../../hub/src/hub/hub.ts', advice: 'A source stands on the hub' },
  { from: 'packages/hub/src/environment.ts', imports: '@rejoin/mdns', advice: 'Take the rest as an argument' },
  { from: 'packages/rejoin/src/http/routes.ts', imports: '../mdns.ts', advice: 'import only each other' },

  { from: 'packages/rejoin/src/http/routes.ts', imports: '../admin/admin-routes.ts', advice: 'import only each other' },
  { from: 'packages/rejoin/src/access/access.ts', imports: '../config/load.ts', advice: 'import only each other' },
  { from: 'packages/rejoin/src/limits/options.ts', imports: '../logging/logging.ts', advice: 'import only each other' },
  { from: 'packages/rejoin/src/admin/admin-routes.ts', imports: '../cli/program.ts', advice: 'without a terminal' },
  { from: 'packages/rejoin/src/http/routes.ts', imports: '../probes.ts', advice: 'import only each other' },
  { from: 'packages/doctor/src/doctor.ts', imports: '@rejoin/hub', advice: 'from outside' },
  { from: 'packages/doctor/src/doctor.ts', imports: '../../rejoin/src/cli/program.ts', advice: 'from outside' },
  { from: 'packages/storm/src/storm.ts', imports: '@rejoin/hub', advice: 'by the protocol alone' },
  {
    from: 'packages/storm/src/reader.ts',
    imports: '@rejoin/client',
    advice: 'nothing of a hub or of our client',
  },
  {
    from: 'packages/rejoin/src/monitoring/metrics.ts',
    imports: '../config/settings.ts',
    advice: 'without a settings file',
  },
  { from: 'packages/rejoin/src/chaos/chaos.ts', imports: '../config/load.ts', advice: 'without a settings file' },
  { from: 'packages/rejoin/src/mdns.ts', imports: './config/load.ts', advice: 'without a settings file' },
  { from: 'packages/rejoin/src/probes.ts', imports: './cli/program.ts', advice: 'without a terminal' },
  { from: 'packages/rejoin/src/snapshots.ts', imports: './config/load.ts', advice: 'without a settings file' },
  {
    from: 'packages/rejoin/src/http/routes.ts',
    imports: '../snapshots.ts',
    advice: 'import only each other',
  },
  { from: 'packages/rejoin/src/config/load.ts', imports: '../cli/program.ts', advice: 'before anything runs' },
  { from: 'packages/rejoin/src/config/load.ts', imports: '../logging/logging.ts', advice: 'before anything runs' },

  { from: 'packages/rejoin/src/cli/main.ts', imports: '../monitoring/metrics.ts', advice: 'starts a hub by serve.ts' },
  { from: 'packages/rejoin/src/cli/main.ts', imports: '../probes.ts', advice: 'starts a hub by serve.ts' },
  { from: 'packages/rejoin/src/config/load.ts', imports: '../probes.ts', advice: 'before anything runs' },
  { from: 'packages/rejoin/src/cli/main.ts', imports: '@rejoin/hub/src/hub/hub.ts', advice: 'by its name' },
  { from: 'packages/rejoin/src/serve.ts', imports: '../../hub/src/hub/hub.ts', advice: 'by its name' },
  { from: 'packages/rejoin/src/serve.ts', imports: '@rejoin/hub/src/hub/hub.ts', advice: 'by its name' },
  {
    from: 'packages/rejoin/src/admin/admin-guard.ts',
    imports: '@rejoin/hub/src/hub/hub.ts',
    advice: 'without a terminal',
  },
  {
    from: 'packages/hub/test/hub/read/resume.test.ts',
    imports: '../../../../protocol/src/encode.ts',
    advice: 'by its name',
  },
  { from: 'test/simulation/judge.ts', imports: '../../packages/hub/src/hub/hub.ts', advice: 'by its name' },
  { from: 'bench/fan-out.ts', imports: '../packages/hub/dist/index.js', advice: 'by its name' },
  { from: 'test/support/until.ts', imports: '../faults/history/history.ts', advice: 'into test/support' },
  {
    from: 'packages/hub/test/hub/operator.test.ts',
    imports: '../../../../test/faults/crowds/crowd.ts',
    advice: 'into test/support',
  },
]

const allowed = [
  { from: 'packages/client/src/testing/attach-to.ts', imports: '../bindings/frame.ts' },
  { from: 'packages/client/src/react/hooks.ts', imports: 'react' },
  { from: 'packages/client/src/vue/composables.ts', imports: 'vue' },
  { from: 'packages/client/src/react/hooks.ts', imports: '../bindings/stream-store.ts' },
  { from: 'packages/client/src/bindings/shared-streams.ts', imports: '../stream.ts' },
  { from: 'packages/protocol/src/codecs/ulid.ts', imports: '../position.ts' },
  { from: 'packages/protocol/test/codecs.test.ts', imports: 'ulid' },
  { from: 'packages/client/src/connection.ts', imports: './backoff.ts' },
  { from: 'packages/client/src/connection.ts', imports: '@rejoin/protocol' },
  { from: 'packages/hub/src/index.ts', imports: './hub/hub.ts' },
  { from: 'packages/hub/src/http/node.ts', imports: '../hub/hub.ts' },
  { from: 'packages/hub/src/http/node.ts', imports: 'node:http' },
  { from: 'packages/hub/src/http/node.ts', imports: 'node:stream/web' },
  { from: 'packages/hub/src/hub/read/session.ts', imports: '../../log/contract.ts' },
  { from: 'packages/hub/src/hub/read/session.ts', imports: '@rejoin/protocol' },
  { from: 'packages/hub/src/log/memory/log.ts', imports: '../contract.ts' },
  { from: 'packages/hub/src/testing/index.ts', imports: '../log/memory/log.ts' },
  { from: 'packages/hub/test/hub/read/resume.test.ts', imports: '../../../src/hub/hub.ts' },
  { from: 'packages/mdns/src/udp-network.ts', imports: 'multicast-dns' },
  { from: 'packages/mdns/src/handler.ts', imports: '@rejoin/hub/internal' },
  { from: 'packages/mdns/src/udp-network.ts', imports: 'node:os' },
  { from: 'packages/rejoin/src/cli/main.ts', imports: '../config/load.ts' },
  { from: 'packages/rejoin/src/config/config.ts', imports: '../access/rules.ts' },
  { from: 'packages/rejoin/src/config/config.ts', imports: '../snapshots.ts' },
  { from: 'packages/rejoin/src/serve.ts', imports: './admin/admin-guard.ts' },
  { from: 'packages/rejoin/src/cli/main.ts', imports: '@rejoin/hub/memory' },
  { from: 'packages/rejoin/src/cli/main.ts', imports: '@rejoin/client' },
  { from: 'test/simulation/judge.ts', imports: '@rejoin/hub' },
]

// What runs in a hub of `rejoin serve`.
const partsOfHub = 'access admin chaos http limits logging monitoring playground'

/**
 * The folders of `src` that each folder may use, beside itself. A border has to reject every other folder, so a new folder is in
 * nobody's reach until it is added here.
 */
const mayUse: Record<string, Record<string, string>> = {
  hub: {
    log: '',
    hub: 'log',
    http: 'hub',
    operations: 'http hub',
    testing: 'http hub log',
  },
  client: {
    transports: 'publisher',
    publisher: 'transports',
    bindings: 'publisher transports',
    react: 'bindings publisher transports',
    vue: 'bindings publisher transports',
    redux: 'bindings publisher transports',
    element: 'bindings publisher transports',
    testing: 'bindings publisher transports',
  },
  rejoin: {
    http: 'access limits',
    limits: 'access http',
    access: 'http limits',
    admin: partsOfHub,
    chaos: partsOfHub,
    logging: partsOfHub,
    monitoring: partsOfHub,
    playground: partsOfHub,
    config: 'access http limits',
    cli: 'access admin chaos config limits logging',
  },
}

const betweenFolders = Object.entries(mayUse).flatMap(([packageName, folders]) =>
  Object.entries(folders).flatMap(([folder, used]) =>
    foldersIn(`packages/${packageName}/src`)
      .filter((other) => other !== folder)
      .map((other) => ({
        from: `packages/${packageName}/src/${folder}/any.ts`,
        imports: `../${other}/any.ts`,
        isAllowed: used.split(' ').includes(other),
      })),
  ),
)

let folder: string
let complaints: Map<string, string>

// The linter is asked once, about a tree like ours that holds one file per case: its rules go by path.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rejoin-boundaries-'))
  await copyFile(join(repository, 'biome.json'), join(folder, 'biome.json'))
  for (const { from, imports } of [...forbidden, ...allowed, ...betweenFolders]) {
    const file = join(folder, exampleFile(from, imports))
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, `export { it } from '${imports}'\n`)
  }
  complaints = await lint(folder)
})

afterAll(() => rm(folder, { recursive: true }))

describe('an import across a boundary is rejected, with the way to go', () => {
  test.each(forbidden)('$from must not import $imports', ({ from, imports, advice }) => {
    expect(complaints.get(exampleFile(from, imports))).toContain(advice)
  })
})

test('the files that these examples name exist', () => {
  const named = [...forbidden, ...allowed].flatMap(({ from, imports }) => [
    from,
    ...(imports.startsWith('.') && !imports.includes('/dist/') ? [join(dirname(from), imports)] : []),
  ])
  expect(named.filter((file) => !existsSync(join(repository, file)))).toEqual([])
})

describe('an import within its boundary passes', () => {
  test.each(allowed)('$from may import $imports', ({ from, imports }) => {
    expect(complaints.get(exampleFile(from, imports))).toBeUndefined()
  })
})

describe.each(Object.keys(mayUse))('between the folders of packages/%s', (packageName) => {
  const source = `packages/${packageName}/src`

  test('every folder has a border', () => {
    expect(Object.keys(mayUse[packageName]!).sort()).toEqual(foldersIn(source))
  })

  test('a border rejects every folder that is not meant to be used behind it', () => {
    const examples = betweenFolders.filter(({ from }) => from.startsWith(source))
    const isRejected = ({ from, imports }: (typeof examples)[number]) => complaints.has(exampleFile(from, imports))
    const told = ({ from, imports }: (typeof examples)[number]) => `${from} imports ${imports}`
    expect(examples.filter((example) => !example.isAllowed && !isRejected(example)).map(told)).toEqual([])
    expect(examples.filter((example) => example.isAllowed && isRejected(example)).map(told)).toEqual([])
  })
})

test('every folder that a border names exists', () => {
  const borders = readJson<Biome>('biome.json').overrides.flatMap(({ includes, linter }) => {
    const patterns = linter.rules.style?.noRestrictedImports?.options.patterns ?? []
    const owner = includes[0]?.match(/^packages\/\w+\/src/)?.[0] ?? 'test'
    return patterns.flatMap(({ group }) => group.flatMap(alternatives)).map((pattern) => ({ owner, pattern }))
  })
  const folders = borders.flatMap(({ owner, pattern }) => {
    const named = pattern.match(/^\*\*\/([\w/-]+)\/\*\*$/)?.[1]
    if (named === undefined) return []
    const otherPackage = named.match(/^(\w+)\/(?:src|dist)$/)?.[1]
    return otherPackage === undefined ? `${owner}/${named}` : `packages/${otherPackage}`
  })
  expect(folders).toContain('packages/hub/src/log/lmdb')
  expect(folders).toContain('packages/rejoin/src/monitoring')
  expect(folders).toContain('test/simulation')
  const files = trackedFiles()
  expect(folders.filter((name) => !files.some((file) => file.startsWith(`${name}/`)))).toEqual([])
})

interface Biome {
  readonly overrides: readonly {
    readonly includes: readonly string[]
    readonly linter: {
      readonly rules: {
        readonly style?: {
          readonly noRestrictedImports?: {
            readonly options: { readonly patterns: readonly { readonly group: readonly string[] }[] }
          }
        }
      }
    }
  }[]
}

/** The patterns that a pattern with braces stands for. */
function alternatives(pattern: string): string[] {
  const [braces, names] = pattern.match(/\{([^}]*)\}/) ?? []
  if (braces === undefined || names === undefined) return [pattern]
  return names.split(',').flatMap((name) => alternatives(pattern.replace(braces, name)))
}

function foldersIn(parent: string): string[] {
  const inside = trackedFiles(`${parent}/*/*`).map((file) => file.slice(parent.length + 1).split('/')[0] as string)
  return [...new Set(inside)].sort()
}

/** Files with a border of their own, which would not hold for a file beside them. Each has one example. */
const bordered = /^packages\/rejoin\/src\/(?:mdns|probes|snapshots)\.ts$/

/** Where the example of an import stands: beside `from`, so that the same rules hold, under a name of its own. */
function exampleFile(from: string, imports: string): string {
  if (bordered.test(from)) return from
  return join(dirname(from), `imports-${imports.replaceAll(/[^a-z]+/g, '-')}.ts`)
}

async function lint(folder: string): Promise<Map<string, string>> {
  const biome = join(repository, 'node_modules/@biomejs/biome/bin/biome')
  const options = ['--only=style/noRestrictedImports', '--vcs-enabled=false', '--max-diagnostics=none']
  const args = [biome, 'lint', ...options, '--reporter=json', '.']
  // It finds something to complain about, so it always ends with an error; what it found is on its standard output.
  const failed = await promisify(execFile)(process.execPath, args, { cwd: folder }).catch((error) => error)
  const report = JSON.parse(failed.stdout) as { diagnostics: { message: string; location: { path: string } }[] }
  return new Map(report.diagnostics.map(({ message, location }) => [location.path, message]))
}
