import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { provide } from '../../../scripts/npm-cache.js'
import { root } from '../../support/paths.ts'
import { readText } from '../../support/repository.ts'

const { dependencies } = JSON.parse(readText('examples/next/package.json')) as { dependencies: Record<string, string> }
const fetched = Object.entries(dependencies).filter(([, version]) => !version.startsWith('file:'))

/** The version of Next.js that is tested. */
export const nextVersion = dependencies.next as string

/**
 * Puts what `npm install` puts into the folder of an application: Next.js, which npm fetches once, and our packages as they are packed.
 * The folder must not be in the clone, where Next.js would take the workspace for the application.
 */
export function installNext(folder: string): void {
  const from = join(
    provide(
      'next',
      fetched.map(([name, version]) => `${name}@${version}`),
    ),
    'node_modules',
  )
  const to = join(folder, 'node_modules')
  // 340 MB: links take a second, if both folders are on one file system.
  try {
    execFileSync('cp', ['--archive', '--link', from, to], { stdio: 'ignore' })
  } catch {
    rmSync(to, { recursive: true, force: true })
    execFileSync('cp', ['--archive', from, to])
  }
  const packages = ['protocol', 'hub', 'client']
  const packed = join(folder, 'packed')
  mkdirSync(packed)
  const workspaces = packages.map((name) => `--workspace=packages/${name}`)
  execFileSync('npm', ['pack', '--silent', `--pack-destination=${packed}`, ...workspaces], {
    cwd: root,
    stdio: 'ignore',
  })
  for (const name of packages) {
    const [file = ''] = readdirSync(packed).filter((file) => file.startsWith(`rejoin-${name}-`))
    const target = join(to, '@rejoin', name)
    mkdirSync(target, { recursive: true })
    execFileSync('tar', ['--extract', '--strip-components=1', `--file=${join(packed, file)}`, `--directory=${target}`])
  }
  rmSync(packed, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n')
}
