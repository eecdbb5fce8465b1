import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const repository = fileURLToPath(new URL('../..', import.meta.url))

const forbidden = [
  { from: 'packages/protocol/src/frame.ts', imports: 'node:buffer', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/frame.ts', imports: 'buffer', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/frame.ts', imports: 'ulid', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/id/ulid.ts', imports: '@rejoin/hub', advice: 'imports only its own files' },
  { from: 'packages/protocol/src/frame.ts', imports: '../../hub/src/hub/session.ts', advice: 'imports only its own' },

  { from: 'packages/client/src/connection.ts', imports: 'node:http', advice: 'Use what the web platform has' },
  { from: 'packages/client/src/connection.ts', imports: 'eventsource-parser', advice: 'Use what the web platform has' },
  { from: 'packages/client/src/connection.ts', imports: '@rejoin/hub', advice: 'belongs in the protocol package' },
  { from: 'packages/client/src/react/hook.ts', imports: '@rejoin/hub/testing', advice: 'belongs in the protocol' },
  { from: 'packages/client/src/parse.ts', imports: '../../protocol/src/parse.ts', advice: 'and @rejoin/protocol' },

  { from: 'packages/hub/src/environment.ts', imports: '@rejoin/client', advice: 'Take the rest as an argument' },
  { from: 'packages/hub/src/environment.ts', imports: 'rejoin', advice: 'Take the rest as an argument' },
  { from: 'packages/hub/src/testing/index.ts', imports: 'vitest', advice: 'Take the rest as an argument' },
  { from: 'packages/hub/src/environment.ts', imports: '../../server/src/main.ts', advice: 'Take the rest' },

  { from: 'packages/hub/src/log/memory.ts', imports: '../hub/session.ts', advice: 'a duty of the log contract' },
  { from: 'packages/hub/src/log/memory.ts', imports: '../http/node.ts', advice: 'a duty of the log contract' },
  { from: 'packages/hub/src/log/redis/tail.ts', imports: '../../hub/turn.ts', advice: 'a duty of the log contract' },
  { from: 'packages/hub/src/log/redis/tail.ts', imports: 'ioredis', advice: 'a duty of the log contract' },

  { from: 'packages/hub/src/hub/session.ts', imports: '../http/sink.ts', advice: 'the sink or the callback' },
  { from: 'packages/hub/src/hub/session.ts', imports: '../log/memory.ts', advice: 'not a concrete log' },
  { from: 'packages/hub/src/hub/session.ts', imports: '../log/lmdb/log.ts', advice: 'not a concrete log' },
  { from: 'packages/hub/src/hub/session.ts', imports: '../log/redis/index.ts', advice: 'not a concrete log' },
  { from: 'packages/hub/src/hub/session.ts', imports: '../log/postgres.ts', advice: 'not a concrete log' },
  {
    from: 'packages/hub/src/hub/session.ts',
    imports: '@rejoin/client',
    advice: 'other packages than @rejoin/protocol',
  },

  { from: 'packages/hub/src/http/node.ts', imports: '../log/memory.ts', advice: 'chosen by the caller' },
  { from: 'packages/hub/src/http/node.ts', imports: 'express', advice: 'no other package than @rejoin/protocol' },

  { from: 'packages/server/src/main.ts', imports: '../../hub/src/hub/hub.ts', advice: 'by its name' },
  { from: 'packages/server/src/main.ts', imports: '@rejoin/hub/src/hub/hub.ts', advice: 'by its name' },
  { from: 'packages/hub/test/replay.test.ts', imports: '../../protocol/src/frame.ts', advice: 'by its name' },
  { from: 'test/simulation/seed.test.ts', imports: '../../packages/hub/src/hub/turn.ts', advice: 'by its name' },
  { from: 'bench/fan-out.ts', imports: '../packages/hub/dist/index.js', advice: 'by its name' },
]

const allowed = [
  { from: 'packages/protocol/src/id/ulid.ts', imports: '../position.ts' },
  { from: 'packages/protocol/test/ulid.test.ts', imports: 'ulid' },
  { from: 'packages/client/src/connection.ts', imports: './backoff.ts' },
  { from: 'packages/client/src/connection.ts', imports: '@rejoin/protocol' },
  { from: 'packages/hub/src/index.ts', imports: './hub/hub.ts' },
  { from: 'packages/hub/src/http/node.ts', imports: '../hub/hub.ts' },
  { from: 'packages/hub/src/http/node.ts', imports: 'node:http' },
  { from: 'packages/hub/src/http/node.ts', imports: 'node:stream/web' },
  { from: 'packages/hub/src/hub/session.ts', imports: '../log/log.ts' },
  { from: 'packages/hub/src/hub/session.ts', imports: '@rejoin/protocol' },
  { from: 'packages/hub/src/log/memory.ts', imports: './log.ts' },
  { from: 'packages/hub/src/testing/index.ts', imports: '../log/memory.ts' },
  { from: 'packages/hub/test/hub/session.test.ts', imports: '../../src/hub/session.ts' },
  { from: 'packages/server/src/main.ts', imports: '@rejoin/hub/memory' },
  { from: 'packages/server/src/main.ts', imports: '@rejoin/client' },
  { from: 'test/simulation/seed.test.ts', imports: '@rejoin/hub' },
]

let folder: string
let complaints: Map<string, string>

// The linter is asked once, about a tree like ours that holds one file per case: its rules go by path.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rejoin-boundaries-'))
  await copyFile(join(repository, 'biome.json'), join(folder, 'biome.json'))
  for (const { from, imports } of [...forbidden, ...allowed]) {
    const file = join(folder, placeOf(from, imports))
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, `export { it } from '${imports}'\n`)
  }
  complaints = await lint(folder)
})

afterAll(() => rm(folder, { recursive: true }))

describe('an import across a boundary is refused, with the way to go', () => {
  test.each(forbidden)('$from must not import $imports', ({ from, imports, advice }) => {
    expect(complaints.get(placeOf(from, imports))).toContain(advice)
  })
})

describe('an import within its boundary passes', () => {
  test.each(allowed)('$from may import $imports', ({ from, imports }) => {
    expect(complaints.get(placeOf(from, imports))).toBeUndefined()
  })
})

/** Beside `from`, so that the same rules hold, under a name of its own. */
function placeOf(from: string, imports: string): string {
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
