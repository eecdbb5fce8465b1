import process from 'node:process'
import { runProgram } from './program.ts'

// The reader of standard error may be gone, as in `2>&1 | head -1`. The program goes on.
process.stderr.on('error', () => undefined)
await runProgram(process.argv.slice(2), process)
