// `npm run build` compiles what is stale; `npm run build -- packages/server` stops at that package and what it uses.
import { compile } from './compile.js'

process.exitCode = compile(process.argv[2] ?? '.') ? 0 : 1
