import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../support/paths.ts'
import { packageFolders, readJson } from '../support/repository.ts'

const run = promisify(execFile)

/** A project of a user, made by the commands of the README. */
export interface PackedProject {
  readonly folder: string
  /** What can be imported of our packages, such as `@rejoin/hub/lmdb`. */
  readonly entries: readonly string[]
  remove(): Promise<void>
}

/** @param commands - lines for a shell; where they install a package of ours, its tarball is installed. */
export async function packedProject(commands: readonly string[]): Promise<PackedProject> {
  const folder = await mkdtemp(join(tmpdir(), 'rejoin-project-'))
  const tarballs = await pack(join(folder, 'tarballs'))
  for (const command of commands) await run('sh', ['-ec', withTarballs(command, tarballs)], { cwd: folder })
  await linkPeers(folder)
  return { folder, entries: manifests().flatMap(entriesOf), remove: () => rm(folder, { recursive: true }) }
}

/** `dist` is fresh, by the set-up of these tests: what `prepack` would do is done. */
async function pack(destination: string): Promise<string[]> {
  await mkdir(destination)
  const workspaces = packageFolders.map((name) => `--workspace=packages/${name}`)
  await run('npm', ['pack', '--ignore-scripts', `--pack-destination=${destination}`, ...workspaces], { cwd: root })
  return (await readdir(destination)).map((file) => join(destination, file))
}

/** All tarballs, where one is asked for: the packages use each other, and no registry has them. */
function withTarballs(command: string, tarballs: string[]): string {
  if (!command.startsWith('npm install ')) return command
  const others = command.split(' ').filter((word) => !/^@?rejoin\b/.test(word))
  return [...others, '--prefer-offline', '--no-audit', '--no-fund', ...tarballs].join(' ')
}

/** Frameworks and clients of databases are the user's. They come from here, unless the commands have installed them. */
function linkPeers(folder: string): Promise<void> {
  return linkPackages(
    folder,
    manifests().flatMap(({ peerDependencies = {} }) => Object.keys(peerDependencies)),
  )
}

/** Installs packages that the clone has as well, without fetching them. */
export async function linkPackages(folder: string, names: readonly string[]): Promise<void> {
  for (const name of new Set(names)) {
    const target = join(folder, 'node_modules', name)
    if (existsSync(target)) continue
    await mkdir(dirname(target), { recursive: true })
    await symlink(join(root, 'node_modules', name), target)
  }
}

interface Manifest {
  name: string
  exports: Record<string, unknown>
  peerDependencies?: Record<string, string>
}

function manifests(): Manifest[] {
  return packageFolders.map((name) => readJson<Manifest>(`packages/${name}/package.json`))
}

function entriesOf({ name, exports }: Manifest): string[] {
  return Object.keys(exports)
    .filter((path) => !/\.(?:json|css)$/.test(path))
    .map((path) => name + path.slice(1))
}
