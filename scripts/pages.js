import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './compile.js'

const source = join(root, 'packages/rejoin/pages')
const output = join(root, 'packages/rejoin/dist/pages')
// Says what the pages were made of. Times do not: a checkout makes old files new.
const stamp = join(output, 'made-of.txt')

/**
 * Brings the pages up to date: the playground and the dashboard. What they use of ours has to be compiled before.
 * @returns {Promise<boolean>} whether they are built
 */
export async function buildPages() {
  const ingredients = hashOfIngredients()
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === ingredients) return true
  // Tests have another one, and would get the React that is twice as large.
  const before = process.env.NODE_ENV
  process.env.NODE_ENV = 'production'
  try {
    // Loaded only where it is used, because that takes longer than all the rest of a start.
    const { build } = await import('vite')
    await build({
      ...{ root: source, base: '/pages/', configFile: false, logLevel: 'warn' },
      build: {
        ...{ outDir: output, emptyOutDir: true, target: 'es2023', assetsInlineLimit: 0, reportCompressedSize: false },
        // Its polyfill, and its hints for files that are a few milliseconds away, are not worth a script.
        modulePreload: false,
        rolldownOptions: { input: ['playground', 'dashboard'].map((page) => join(source, `${page}.html`)) },
      },
    })
    writeFileSync(stamp, ingredients)
    return true
  } catch (error) {
    console.error(error)
    return false
  } finally {
    if (before === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = before
  }
}

function hashOfIngredients() {
  const hash = createHash('sha256')
  const folders = [source, join(root, 'packages/client/dist'), join(root, 'packages/protocol/dist')]
  for (const folder of folders) {
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      if (isIngredient(file)) hash.update(readFileSync(join(folder, file)))
    }
  }
  for (const name of ['react', 'react-dom', 'uplot', 'vite']) {
    hash.update(readFileSync(join(root, 'node_modules', name, 'package.json')))
  }
  return hash.update(readFileSync(new URL(import.meta.url))).digest('hex')
}

/** @param {string} file */
function isIngredient(file) {
  return /\.(?:tsx?|js|css|html)$/.test(file) && !file.endsWith('.d.ts') && file !== 'standalone.js'
}
