import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that take longest, which start before the others of their project: a long one that starts last runs alone, and leaves the
 * other cores idle. Vitest knows by itself only what took long in an earlier run, and a fresh clone has none. The end of `npm test`
 * names the slowest files.
 */
const longest = [
  'test/simulation/join-exhaustive.test.ts',
  'test/simulation/second-thousand-seeds.test.ts',
  'test/simulation/first-thousand-seeds.test.ts',
  'test/package/pack-and-install.test.ts',
  'test/package/examples.test.ts',
  'test/services/redis/nodes.test.ts',
  'test/browser/dashboard.test.ts',
  'test/browser/playground-page.test.ts',
  'test/browser/third-party.test.ts',
  'test/browser/bindings-reload.test.ts',
  'test/browser/account-switch.test.ts',
  'test/browser/bindings.test.ts',
  'test/browser/bindings-connections.test.ts',
  'test/browser/lifecycle.test.ts',
  'test/browser/workers.test.ts',
  'test/services/redis/cluster.test.ts',
  'test/services/redis/serve.test.ts',
  'test/services/runtimes/runtimes.test.ts',
  'test/services/proxies/doctor.test.ts',
  'test/services/terminal/operator.test.ts',
  'test/faults/process/crashes.test.ts',
  'test/faults/disk/full-and-damaged.test.ts',
  'test/faults/disk/trims.test.ts',
  'test/faults/network/tail.test.ts',
  'test/faults/disk/folders.test.ts',
  'packages/hub/test/http/rushes.test.ts',
  'packages/hub/test/log/work-per-turn.test.ts',
  'packages/rejoin/test/http/tls.test.ts',
  'packages/rejoin/test/storm/storm.test.ts',
  'packages/rejoin/test/limits/limits.test.ts',
]

/** Projects whose files take longest come first; the short files of the last ones fill what the cores have left at the end. */
const projects = ['package', 'examples', 'services', 'faults', 'long-alone', 'long']

/** Keeps the files of a project together, because a worker goes on with them as it is. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const moved = longest.find((file) => !existsSync(root + file))
    if (moved !== undefined) throw new Error(`test/longest-first.ts names ${moved}, which is not there.`)
    const sorted = await super.sort(files)
    return sorted
      .map((spec, index) => ({ spec, index }))
      .sort((one, other) => {
        const byProject = rankIn(projects, one.spec.project.name) - rankIn(projects, other.spec.project.name)
        if (byProject !== 0) return byProject
        if (one.spec.project !== other.spec.project) return one.index - other.index
        return fileOf(one.spec) - fileOf(other.spec) || one.index - other.index
      })
      .map(({ spec }) => spec)
  }
}

const root = fileURLToPath(new URL('..', import.meta.url))

function fileOf({ moduleId }: TestSpecification): number {
  return rankIn(longest, moduleId.slice(root.length))
}

/** Behind all others when it is not among them. */
function rankIn(names: readonly string[], name: string): number {
  const rank = names.indexOf(name)
  return rank === -1 ? names.length : rank
}
