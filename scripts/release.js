// `npm run release -- 0.2.0` prepares a version: the manifests, the changelog, a commit and a tag. `npm run release -- --publish`
// publishes the tagged version, and is run by CI, which can prove where the packages were built. `--dry-run` shows both.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { root } from './compile.js'
import { notesOf, withRelease } from './release/changelog.js'
import { packagesInOrder, withDocumentVersion, withVersion, withVersions } from './release/packages.js'
import { nextVersion } from './release/version.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'dry-run': { type: 'boolean', default: false }, publish: { type: 'boolean', default: false } },
})
const dryRun = values['dry-run']
const packages = packagesInOrder(root)
const changelog = join(root, 'CHANGELOG.md')
const lockFile = join(root, 'package-lock.json')
const openApi = join(root, 'packages/rejoin/openapi.json')

try {
  if (values.publish) publish()
  else prepare()
} catch (error) {
  console.error(`The release stops here. ${error instanceof Error ? error.message : error}`)
  process.exitCode = 1
}

function prepare() {
  const version = nextVersion(positionals[0], packages[0]?.manifest.version, tags())
  const text = withRelease(readFileSync(changelog, 'utf8'), version, new Date().toISOString().slice(0, 10))
  console.log(`Version ${version}, of ${packages.map(({ name }) => name).join(', ')}\n\n${notesOf(text, version)}`)
  if (dryRun) {
    show(version)
    return
  }
  if (git('status', '--porcelain') !== '')
    throw new Error('There are changes that are not committed. Commit them first.')
  for (const { file, manifest } of packages) {
    writeFileSync(file, asFile(withVersion(manifest, version, packages)))
  }
  writeFileSync(changelog, text)
  writeFileSync(openApi, withDocumentVersion(readFileSync(openApi, 'utf8'), version))
  const lock = JSON.parse(readFileSync(lockFile, 'utf8'))
  writeFileSync(lockFile, asFile(withVersions(lock, version, packages)))
  git('commit', '--all', '--message', `chore: release ${version}`)
  // By default git takes the headings for comments, and drops them.
  git('tag', '--annotate', `v${version}`, '--cleanup=whitespace', '--message', notesOf(text, version))
  console.log(`Committed, and tagged as v${version}. Look at it, then: git push origin HEAD v${version}`)
}

/** @param {string} version */
function show(version) {
  console.log(
    `\nWould set ${version} in ${packages.length} manifests, commit "chore: release ${version}" and tag v${version}.`,
  )
  const listed = JSON.parse(npm('pack', '--dry-run', '--json', '--ignore-scripts', ...workspaces()))
  for (const { name, entryCount, size } of listed) {
    console.log(`Would publish ${name}@${version}: ${entryCount} files, ${Math.ceil(size / 1024)} KB`)
  }
  console.log(`CI would run: ${['npm', ...publishing()].join(' ')}`)
}

function publish() {
  const version = packages[0]?.manifest.version
  if (!git('tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`)) {
    throw new Error(`The commit is not tagged as v${version}. Prepare the version first: npm run release -- ${version}`)
  }
  checkOrigin()
  if (!process.env.ACTIONS_ID_TOKEN_REQUEST_URL && !process.env.SIGSTORE_ID_TOKEN && !dryRun) {
    throw new Error('npm can prove the origin of a package only in CI. Push the tag, and let the release job do this.')
  }
  console.log(npm(...publishing(), ...(dryRun ? ['--dry-run'] : [])))
}

/** npm shows where a package was built, and rejects another repository than its manifest names. */
function checkOrigin() {
  const origin = git('remote', 'get-url', 'origin')
    .replace(/^git@([^:]+):/, 'https://$1/')
    .replace(/(?:\.git)?$/, '.git')
  const strangers = packages.filter(({ manifest }) => manifest.repository.url !== `git+${origin}`)
  if (strangers.length === 0) return
  throw new Error(
    `This clone is of ${origin}, but the package.json of ${strangers.map(({ name }) => name).join(', ')} names another ` +
      'repository. Set `repository` there.',
  )
}

function publishing() {
  return ['publish', '--provenance', '--access', 'public', ...workspaces()]
}

/** In the order in which they use each other, so that no package is there before the packages that it needs. */
function workspaces() {
  return packages.map(({ folder }) => `--workspace=${folder}`)
}

function tags() {
  return git('tag', '--list', 'v*').split('\n')
}

/** @param {unknown} json */
function asFile(json) {
  return `${JSON.stringify(json, null, 2)}\n`
}

/** @param {string[]} args */
function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}

/** @param {string[]} args */
function npm(...args) {
  return execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}
