import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'

/**
 * Reads a file through LMDB in a child process. A damaged page can end a process by a signal; in the hub's own process, nobody
 * would learn why.
 *
 * @returns undefined when no such process can be started here, for example in a program that was compiled into one file
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

// To count the keys takes 0.12 µs each.
const judgeTimeoutMs = 30_000

// Exit codes that a process does not use when it fails for another reason.
const codes = { whole: 40, damaged: 41 }

// Signals of a failed assertion in LMDB or of a wrong page number. Somebody sent any other signal on purpose.
const deadly: readonly NodeJS.Signals[] = ['SIGABRT', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP']

// The program is text, because a bundler would not include a file for it.
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
