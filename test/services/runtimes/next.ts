import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readText } from '../../support/repository.ts'
import { runtimeContract } from './contract.ts'
import { installNext, nextVersion } from './next-install.ts'
import { startRuntime } from './process.ts'

// `npm run test:next`: too long for every `npm test`, which has test/services/examples/next.test.ts.

const folder = mkdtempSync(join(tmpdir(), 'rejoin-next-'))
const program = join(folder, 'node_modules/next/dist/bin/next')
const env = { NEXT_TELEMETRY_DISABLED: '1' }

beforeAll(() => {
  cpSync(here('next-app'), folder, { recursive: true })
  cpSync(here('talking-hub.js'), join(folder, 'talking-hub.js'))
  installNext(folder)
  execFileSync(process.execPath, [program, 'build'], { cwd: folder, env: { ...process.env, ...env }, stdio: 'inherit' })
}, 600_000)

afterAll(() => rmSync(folder, { recursive: true }), 60_000)

test('docs/guides/adapters.md names the version that runs here', () => {
  expect(readText('docs/guides/adapters.md')).toContain(`| Next.js ${nextVersion} |`)
})

describe('a route handler of Next.js, built and started', () => {
  runtimeContract({
    tellsAddress: false,
    async start(hub) {
      const args = [program, 'start', '--port', '0', '--hostname', '127.0.0.1']
      const started = await startRuntime(process.execPath, args, { hub, folder, env })
      return { ...started, port: Number(await started.printed(/Local: +http:\/\/[^:]+:(\d+)/)) }
    },
  })
})

function here(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}
