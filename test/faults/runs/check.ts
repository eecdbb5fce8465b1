/** The verdict on histories that are there: npm run faults -- check <file>… */
import { judge } from '../long-run.ts'

const files = process.argv.slice(2)
if (files.length === 0) throw new Error('Name the files that hold the history.')
judge(...files)
