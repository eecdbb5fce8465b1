import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'

/**
 * Has a process of its own read a file through LMDB, which may die of it: a damaged page can end a process by a signal, and
 * nobody would be told why.
 *
 * @returns undefined when such a process cannot be started here, as in a program that was compiled into one file
 */
export async function judgeInChild(path: string): Promise<'whole' | 'damaged' | undefined> {
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    const args = ['-e', program, createRequire(import.meta.url).resolve('lmdb'), path]
    const child = spawn(process.execPath, args, { stdio: 'ignore', timeout: judgeTimeoutMs })
    child.once('error', () => resolve([null, null]))
    child.once('exit', (code, signal) => resolve([code, signal]))
  })
  if (code === codes.whole) return 'whole'
  return code === codes.damaged || (signal !== null && deadly.includes(signal)) ? 'damaged' : undefined
}

// Counting the keys takes 0.12 µs each.
const judgeTimeoutMs = 30_000

// Numbers that a process which fails for another reason does not end with.
const codes = { whole: 40, damaged: 41 }

// An assertion of LMDB, and what comes of following a wrong page number. Others are somebody's decision.
const deadly: readonly NodeJS.Signals[] = ['SIGABRT', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP']

// As text, so that it needs no file of its own: a bundler would not find it.
const program = `
const [lmdb, path] = process.argv.slice(1)
const { open } = require(lmdb)
const layout = { keyEncoding: 'binary', encoding: 'binary', cache: false, maxDbs: 1, overlappingSync: false }
let isWhole
try {
  const database = open(path, { ...layout, readOnly: true })
  isWhole = database.getKeysCount() === database.getStats().entryCount
} catch {
  isWhole = false
}
process.exit(isWhole ? ${codes.whole} : ${codes.damaged})
`
