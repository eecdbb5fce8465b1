// `npm start` builds what is stale and serves; what follows `--` goes to `rejoin serve`.
import { fileURLToPath } from 'node:url'
import { compile } from './compile.js'
import { buildPages } from './pages.js'

const program = new URL('../packages/rejoin/bin/rejoin.js', import.meta.url)

// The first build takes half a minute, and nobody should have to wonder what happens.
const notice = setTimeout(() => console.error('Building what has changed…'), 1000)
const isBuilt = (await compile('packages/rejoin')) && (await buildPages())
clearTimeout(notice)

if (isBuilt) {
  // The program runs in this process, so that signals and the exit code need nobody to carry them.
  process.argv.splice(1, 1, fileURLToPath(program), 'serve')
  await import(program.href)
} else {
  process.exitCode = 1
}
