import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '../support/paths.ts'
import { packageFolders, trackedFiles } from '../support/repository.ts'

test('a dry run shows the version, its notes and every package, and changes nothing', () => {
  const before = state(root)
  const { stdout, status } = release(root, 'minor', '--dry-run')
  expect({ stdout, status }).toMatchObject({ status: 0 })
  expect(stdout).toContain('chore: release')
  expect(stdout).toContain('--provenance')
  for (const folder of packageFolders) {
    expect(stdout).toContain(`Would publish ${folder === 'rejoin' ? 'rejoin' : `@rejoin/${folder}`}@`)
  }
  expect(state(root)).toBe(before)
})

test('a release sets the version everywhere, dates the changelog, and tags the commit with the notes', () => {
  const clone = repository()
  expect(release(clone, '0.9.0')).toMatchObject({ status: 0, stderr: '' })
  for (const folder of packageFolders) {
    const { version, dependencies = {} } = JSON.parse(
      readFileSync(join(clone, `packages/${folder}/package.json`), 'utf8'),
    )
    const ours = Object.entries(dependencies).filter(([name]) => name.startsWith('@rejoin/'))
    expect([version, ...ours.map(([, range]) => range)]).toEqual(Array(ours.length + 1).fill('0.9.0'))
  }
  expect(readFileSync(join(clone, 'CHANGELOG.md'), 'utf8')).toMatch(
    /## Unreleased\n\n## 0\.9\.0 \(\d{4}-\d\d-\d\d\)\n\n- \*\*/,
  )
  const lock = JSON.parse(readFileSync(join(clone, 'package-lock.json'), 'utf8'))
  expect(packageFolders.map((folder) => lock.packages[`packages/${folder}`].version)).toEqual(
    packageFolders.map(() => '0.9.0'),
  )
  const openApi = readFileSync(join(clone, 'packages/rejoin/openapi.json'), 'utf8')
  expect(JSON.parse(openApi).info.version).toBe('0.9.0')
  expect(git(clone, 'tag', '--list', '--format=%(contents)', 'v0.9.0')).toMatch(/^- \*\*/)
  expect(git(clone, 'status', '--porcelain')).toBe('')
  expect(release(clone, '0.9.0').stderr).toContain('Version 0.9.0 is out already')
})

test('the notes of a release may begin with a heading', () => {
  const clone = repository()
  writeFileSync(join(clone, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n### Added\n\n- **All of it.**\n')
  git(clone, 'commit', '--quiet', '--all', '--message=docs')
  expect(release(clone, '0.9.0')).toMatchObject({ status: 0, stderr: '' })
  expect(readFileSync(join(clone, 'CHANGELOG.md'), 'utf8')).toMatch(
    /## Unreleased\n\n## 0\.9\.0 \(\d{4}-\d\d-\d\d\)\n\n### Added\n\n- \*\*All of it/,
  )
  expect(git(clone, 'tag', '--list', '--format=%(contents)', 'v0.9.0')).toBe('### Added\n\n- **All of it.**')
})

test('a release is rejected with changes that are not committed, and without anything to tell users', () => {
  const clone = repository()
  writeFileSync(join(clone, 'README.md'), 'changed')
  expect(release(clone, '0.9.0').stderr).toContain('not committed')
  git(clone, 'commit', '--quiet', '--all', '--message=docs')
  writeFileSync(join(clone, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- **All of it.**\n')
  expect(release(clone, '0.9.0').stderr).toContain('nothing under "## Unreleased"')
  writeFileSync(join(clone, 'CHANGELOG.md'), '## Unreleased\n\n### Added\n\n## 0.1.0\n\n- **All of it.**\n')
  expect(release(clone, '0.9.0').stderr).toContain('nothing under "## Unreleased"')
})

test('nothing is published from another repository, from a commit without its tag, or without proof of its origin', () => {
  const clone = repository()
  expect(release(clone, '--publish').stderr).toContain('is not tagged')
  release(clone, '0.9.0')
  git(clone, 'remote', 'add', 'origin', 'https://github.com/somebody/fork.git')
  expect(release(clone, '--publish').stderr).toContain('names another repository')
  git(clone, 'remote', 'set-url', 'origin', 'git@github.com:rejoin/rejoin.git')
  expect(release(clone, '--publish').stderr).toContain('only in CI')
})

function release(folder: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: _, SIGSTORE_ID_TOKEN: __, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/release.js', ...args], {
    ...{ cwd: folder, encoding: 'utf8', env },
  })
  return { status, stdout, stderr: stderr.replaceAll(/^npm warn .*\n/gm, '') }
}

/** What is released of this repository, in one of its own. */
function repository(): string {
  const clone = mkdtempSync(join(tmpdir(), 'rejoin-release-'))
  onTestFinished(() => rmSync(clone, { recursive: true, force: true }))
  const files = trackedFiles().filter((file) => /^(?:scripts\/.+|packages\/[^/]+\/[^/]+|[^/]+)$/.test(file))
  for (const file of files) {
    mkdirSync(dirname(join(clone, file)), { recursive: true })
    cpSync(join(root, file), join(clone, file))
  }
  git(clone, 'init', '--quiet')
  git(clone, 'config', 'user.name', 'Ada')
  git(clone, 'config', 'user.email', 'ada@example.com')
  git(clone, 'add', '--all')
  git(clone, 'commit', '--quiet', '--message=all of it')
  return clone
}

function state(folder: string): string {
  return git(folder, 'status', '--porcelain') + git(folder, 'tag', '--list') + git(folder, 'rev-parse', 'HEAD')
}

function git(folder: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}
