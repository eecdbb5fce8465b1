// `npm run build` compiles what is stale; `npm run build -- packages/server` stops at that package and what it uses.
import { compile } from './compile.js'
import { buildPages } from './pages.js'

const [, , project = '.'] = process.argv
const hasPages = ['.', 'packages/server'].includes(project)

process.exitCode = compile(project) && (!hasPages || (await buildPages())) ? 0 : 1
