// `npm run bench -- parse` builds and runs bench/parse.ts; without a name it lists what there is.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile, root } from './compile.js'

const benches = describeBenches()
const name = process.argv[2]

if (name === undefined || !benches.has(name)) {
  console.log(`usage: npm run bench -- <name> [options]\n`)
  for (const [bench, description] of benches) console.log(`  ${bench.padEnd(12)} ${description}`)
  process.exitCode = name === undefined ? 0 : 1
} else if (await compile('bench')) {
  const program = new URL(`../bench/dist/bench/${name}.js`, import.meta.url)
  process.argv.splice(1, 2, fileURLToPath(program))
  await import(program.href)
} else {
  process.exitCode = 1
}

/**
 * A benchmark is a file of bench/ that opens with a doc comment; helpers do not. The first line of that comment is its
 * description.
 */
function describeBenches() {
  /** @type {Map<string, string>} */
  const found = new Map()
  for (const file of readdirSync(join(root, 'bench')).sort()) {
    if (!file.endsWith('.ts')) continue
    const text = readFileSync(join(root, 'bench', file), 'utf8')
    const description = /^\/\*\*\s*(?:\*\s+)?(.+?)\s*(?:\*\/)?$/m.exec(text)
    if (description?.index === 0) found.set(file.slice(0, -'.ts'.length), description[1] ?? '')
  }
  return found
}
