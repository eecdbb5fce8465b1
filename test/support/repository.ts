import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './paths.ts'

/** The folders of packages/, in the order in which they depend on each other. */
export const packageFolders = ['protocol', 'hub', 'client', 'mdns', 'doctor', 'storm', 'rejoin']

/** What is in git, or would be with the next `git add`: a check that waits for the commit comes too late. */
export function trackedFiles(pattern = '*'): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z', '--', pattern]
  const listed = execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\0')
  return listed.filter((file) => file !== '' && existsSync(join(root, file)))
}

export function readText(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

export function readJson<T>(file: string): T {
  return JSON.parse(readText(file)) as T
}
