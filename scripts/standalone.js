import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './compile.js'

const client = join(root, 'packages/client')
const output = join(client, 'dist/standalone.js')

/**
 * Puts the whole client into one file, for pages without a bundler. The client has to be compiled before.
 * @returns {Promise<boolean>} whether it is built
 */
export async function buildStandalone() {
  const banner = `/* @rejoin/client ${versionOf(client)}, MIT licence, made of ${hashOfIngredients()} */\n`
  // The first line says what the file was made of. Times do not: a checkout makes old files new.
  if (existsSync(output) && readFileSync(output, 'utf8').startsWith(banner)) return true
  try {
    // Loaded only where it is used, because that takes longer than all the rest of a build.
    const { rolldown } = await import('rolldown')
    const build = await rolldown({ input: join(client, 'dist/index.js'), platform: 'browser' })
    const { output: files } = await build.generate({ minify: true, codeSplitting: false })
    await build.close()
    writeFileSync(output, banner + files[0].code)
    return true
  } catch (error) {
    console.error(error)
    return false
  }
}

function hashOfIngredients() {
  const hash = createHash('sha256')
  for (const folder of [join(client, 'dist'), join(root, 'packages/protocol/dist')]) {
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      if (file.endsWith('.js') && file !== 'standalone.js') hash.update(readFileSync(join(folder, file)))
    }
  }
  hash.update(versionOf(join(root, 'node_modules/rolldown')))
  return hash
    .update(readFileSync(new URL(import.meta.url)))
    .digest('hex')
    .slice(0, 16)
}

/** @param {string} folder */
function versionOf(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version
}
