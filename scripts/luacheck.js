// The second half of `npm run lint`: checks the script for Redis by luacheck, as the hub sends it. The files alone would not do:
// each uses what the files before it define, and what the hub puts in front of them.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile, root } from './compile.js'
import { executableOf, installCommand, luacheck } from './services.js'

const folder = 'packages/hub/src/log/redis/script'

const command = executableOf(luacheck)
if (!command) {
  console.log(`Skipped: ${folder}/*.lua (needs ${luacheck.name}). To add it: ${installCommand([luacheck])}`)
  process.exitCode = process.env.CI === 'true' ? 1 : 0
} else {
  process.exitCode = (await compile('packages/hub')) && check(command, await script()) ? 0 : 1
}

/** @returns {Promise<string>} the script of a hub, with all its settings */
async function script() {
  const { scriptFor } = await import(join(root, 'packages/hub/dist/log/redis/script/script.js'))
  const bounds = { maxEvents: 1, maxAgeMs: 1, maxBytes: 1 }
  const settings = {
    ...{ prefix: '{rejoin}:', writer: 'hub', range: { kind: 'hybrid', maxSeq: 1, minMs: 1, maxMs: 1 } },
    ...{ window: bounds, windows: new Map([['a', bounds]]), feed: bounds, forgetAfterMs: 1, maxBytes: 1 },
    idempotency: { maxAgeMs: 1, maxKeys: 1, maxRecentKeys: 1 },
  }
  return scriptFor(settings, { run: 'process', lineage: 'history' }, 'once').source
}

/**
 * @param {string} command
 * @param {string} text
 */
function check(command, text) {
  const args = ['--formatter', 'plain', '--codes', '--no-color', '-']
  const { stdout, stderr, status } = spawnSync(command, args, { cwd: root, input: text, encoding: 'utf8' })
  const places = placesIn(text)
  process.stdout.write(stdout.replaceAll(/^stdin:(\d+):/gm, (_, line) => `${places(Number(line))}:`) + stderr)
  return status === 0
}

/**
 * Where each line of the script comes from.
 * @param {string} text
 */
function placesIn(text) {
  const files = readdirSync(join(root, folder)).filter((file) => file.endsWith('.lua'))
  const starts = files.map((file) => {
    const before = text.slice(0, text.indexOf(readFileSync(join(root, folder, file), 'utf8')))
    return { file: `${folder}/${file}`, line: before.split('\n').length }
  })
  starts.sort((a, b) => a.line - b.line)
  return (/** @type {number} */ line) => {
    const start = starts.findLast((each) => each.line <= line)
    return start ? `${start.file}:${line - start.line + 1}` : `${folder}/script.ts: line ${line} of the script`
  }
}
