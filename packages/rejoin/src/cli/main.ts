import process from 'node:process'
import { runProgram } from './program.ts'

// The reader of an output may be gone, as in `rejoin --help | head -1`. The program goes on: a hub must not stop with the reader
// of its log. Any other failure, such as a full disk, shows in the exit code.
process.stderr.on('error', () => undefined)
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') process.exitCode = 1
})
await runProgram(process.argv.slice(2), process)
