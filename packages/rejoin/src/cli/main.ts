import process from 'node:process'
import { runProgram } from './program.ts'

// What the program has to say of its work may have nobody left to read it, as in `2>&1 | head -1`. The work goes on.
process.stderr.on('error', () => undefined)
await runProgram(process.argv.slice(2), process)
