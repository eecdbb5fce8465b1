import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = 'log/redis/script'

/**
 * Puts the texts of the Lua files into the built module that reads them, so that a bundle of the hub has them.
 * @param {string} hub the folder of the package
 */
export function embedLua(hub) {
  const module = join(hub, 'dist', folder, 'lua.js')
  if (!existsSync(module)) return
  const loader = readFileSync(join(hub, 'src', folder, 'lua.ts'), 'utf8')
  const files = [...loader.matchAll(/^ {2}read\('(.+)'\),$/gm)].map(([, file = '']) => file)
  if (files.length === 0) throw new Error('lua.ts names no file.')
  const texts = files.map((file) => readFileSync(join(hub, 'src', folder, file), 'utf8'))
  const code = `export const lua = ${JSON.stringify(texts, null, 2)}\n`
  // A process that runs may be loading it.
  if (readFileSync(module, 'utf8') !== code) writeFileSync(module, code)
}
