import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../../support/paths.ts'
import { readText } from '../../support/repository.ts'
import { runtimeContract } from './contract.ts'
import { startRuntime } from './process.ts'

// `npm run test:next`. An install of 340 MB and a build of half a minute are too much for every `npm test`.

const next = '16.4.6'
const versions = [`next@${next}`, 'react@19.3.1', 'react-dom@19.3.1']
// Not below node_modules, where Next takes nothing for a part of the application.
const folder = mkdtempSync(join(tmpdir(), 'rejoin-next-'))
const program = join(folder, 'node_modules/next/dist/bin/next')
const env = { NEXT_TELEMETRY_DISABLED: '1' }

beforeAll(() => {
  cpSync(here('next-app'), folder, { recursive: true })
  cpSync(here('talking-hub.js'), join(folder, 'talking-hub.js'))
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
  const workspaces = ['protocol', 'hub'].map((name) => `--workspace=packages/${name}`)
  run('npm', ['pack', '--silent', `--pack-destination=${folder}`, ...workspaces], root)
  const packed = readdirSync(folder).filter((file) => file.endsWith('.tgz'))
  run('npm', ['install', '--no-audit', ...versions, ...packed.map((file) => join(folder, file))])
  run(process.execPath, [program, 'build'])
}, 600_000)

afterAll(() => rmSync(folder, { recursive: true }), 60_000)

test('docs/guides/adapters.md names the version that runs here', () => {
  expect(readText('docs/guides/adapters.md')).toContain(`| Next.js ${next} |`)
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

function run(command: string, args: string[], cwd = folder): void {
  execFileSync(command, args, { cwd, env: { ...process.env, ...env }, stdio: 'inherit' })
}

function here(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}
