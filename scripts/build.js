// `npm run build` compiles what is stale; `npm run build -- packages/rejoin` stops at that package and what it uses.
import { compile } from './compile.js'
import { buildPages } from './pages.js'
import { buildStandalone } from './standalone.js'

const [, , project = '.'] = process.argv
const hasStandalone = ['.', 'packages/client', 'packages/rejoin'].includes(project)
const hasPages = ['.', 'packages/rejoin'].includes(project)

const built =
  (await compile(project)) && (!hasStandalone || (await buildStandalone())) && (!hasPages || (await buildPages()))
process.exitCode = built ? 0 : 1
