// `npm run faults -- cuts` builds and runs test/faults/runs/cuts.ts; without a name it lists what there is.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile, root } from './compile.js'

const runs = describeRuns()
const name = process.argv[2]

if (name === undefined || !runs.has(name)) {
  console.log(`usage: npm run faults -- <name> [--seed <number>] [--keep] [options]\n`)
  for (const [run, description] of runs) console.log(`  ${run.padEnd(8)} ${description}`)
  process.exitCode = name === undefined ? 0 : 1
} else if (await compile('test/faults')) {
  const program = new URL(`../test/faults/dist/faults/runs/${name}.js`, import.meta.url)
  process.argv.splice(1, 2, fileURLToPath(program))
  await import(program.href)
} else {
  process.exitCode = 1
}

/**
 * A run is a file of test/faults/runs that opens with a doc comment; helpers do not. The first line of that comment is its
 * description.
 */
function describeRuns() {
  /** @type {Map<string, string>} */
  const found = new Map()
  const folder = join(root, 'test/faults/runs')
  for (const file of readdirSync(folder).sort()) {
    const text = readFileSync(join(folder, file), 'utf8')
    const description = /^\/\*\*\s*(?:\*\s+)?(.+?)\s*(?:\*\/)?$/m.exec(text)
    if (description?.index === 0) found.set(file.slice(0, -'.ts'.length), description[1] ?? '')
  }
  return found
}
