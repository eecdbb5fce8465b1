import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { provide } from '../../../scripts/npm-cache.js'
import { readText } from '../../support/repository.ts'
import { runtimeContract } from './contract.ts'
import { startRuntime } from './process.ts'

const bun = { name: '@oven/bun-linux-x64', version: '1.4.4', binary: 'bin/bun' }
const deno = { name: '@deno/linux-x64-glibc', version: '2.9.6', binary: 'deno' }

test('docs/guides/adapters.md names the versions that run here', () => {
  const guide = readText('docs/guides/adapters.md')
  expect(guide).toContain(`| Bun ${bun.version} |`)
  expect(guide).toContain(`| Deno ${deno.version} |`)
})

// These packages are the programs of one platform; others have others.
describe.skipIf(`${process.platform} ${process.arch}` !== 'linux x64')('on Linux and x64', () => {
  let folder: string

  beforeAll(() => {
    folder = provide(
      'runtimes',
      [bun, deno].map(({ name, version }) => `${name}@${version}`),
    )
  }, 300_000)

  describe('Bun', () => {
    runtimeContract({ tellsAddress: true, start: (hub) => start(bun, ['bun.js'], hub) })
  })

  describe('Deno', () => {
    const args = ['run', '--allow-env', '--allow-net', '--allow-read', '--allow-sys', 'deno.js']
    runtimeContract({ tellsAddress: true, start: (hub) => start(deno, args, hub) })
  })

  async function start({ name, binary }: typeof bun, args: string[], hub: Record<string, unknown>) {
    const here = fileURLToPath(new URL('.', import.meta.url))
    const started = await startRuntime(join(folder, 'node_modules', name, binary), args, { hub, folder: here })
    const { port } = await started.saw('listening')
    return { ...started, port: port as number }
  }
})
