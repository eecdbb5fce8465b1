import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../support/paths.ts'
import type { GuideModule } from './guide-modules.ts'
import { nameOf, namesOfTheReader } from './guide-names.ts'

const run = promisify(execFile)

/**
 * Writes modules of guides into a project, and compiles them.
 *
 * @returns what the compiler complains of, a line each: `guides/<page>/…`
 */
export async function compileModules(folder: string, modules: readonly GuideModule[]): Promise<string[]> {
  for (const module of modules) await write(join(folder, 'guides'), module)
  return [
    ...(await compile(folder, 'strict', asNewProjects, ['guides/**/*.ts', 'guides/**/*.tsx'])),
    ...(await compile(folder, 'plain', { strict: false, checkJs: true }, ['guides/**/*.js'])),
  ]
}

/** What `tsc --init` writes, but for the modules: a page has code for bundlers, too. */
const asNewProjects = {
  strict: true,
  declaration: true,
  exactOptionalPropertyTypes: true,
  isolatedModules: true,
  moduleDetection: 'force',
  noUncheckedIndexedAccess: true,
  noUncheckedSideEffectImports: true,
  verbatimModuleSyntax: true,
}

async function write(folder: string, { page, file, code }: GuideModule): Promise<void> {
  const path = join(folder, page, file)
  const theirs = (namesOfTheReader[page] ?? []).filter((declaration) => isNeeded(nameOf(declaration), code))
  // JavaScript has no declarations without values.
  const declared = theirs.map((declaration) =>
    file.endsWith('.js') ? `var ${nameOf(declaration)}` : `declare ${declaration}`,
  )
  const checked = code.replaceAll(/^(?=.*\/\/ does not compile$)/gm, '// @ts-expect-error\n')
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, [checked, ...declared, 'export {}', ''].join('\n'))
}

function isNeeded(name: string, code: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(code)
}

async function compile(folder: string, name: string, options: object, include: string[]): Promise<string[]> {
  const compilerOptions = {
    ...{
      target: 'ES2023',
      module: 'esnext',
      moduleResolution: 'bundler',
      noEmit: true,
      jsx: 'react-jsx',
      skipLibCheck: true,
    },
    ...{ allowImportingTsExtensions: true, experimentalDecorators: true },
    // Types of Node and of the web are the reader's, and come from here.
    ...{
      lib: ['ES2024', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'],
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    },
    ...options,
  }
  const file = join(folder, `tsconfig.${name}.json`)
  await writeFile(file, JSON.stringify({ compilerOptions, include }))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, '--pretty', 'false', '-p', file], { cwd: folder }).catch(
    (failed) => failed,
  )
  return String(stdout)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(' '))
}
