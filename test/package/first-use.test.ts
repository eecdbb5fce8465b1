import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { startCommand } from '../support/command.ts'
import { root } from '../support/paths.ts'
import { packageFolders, readJson, trackedFiles } from '../support/repository.ts'

const run = promisify(execFile)
const { version } = readJson<{ version: string }>('packages/client/package.json')

test('in a fresh clone, npm start builds what it needs and serves, and what the README says to try works', async () => {
  const clone = freshClone()
  const program = startCommand('npm', ['start', '--', '--port', '0'], clone)
  await program.prints(/Building what has changed…/)
  const [url] = await program.prints(/http:\/\/127\.0\.0\.1:\d+/)
  const reader = await fetch(`${url}/events/demo`)
  const text = reader.body?.pipeThrough(new TextDecoderStream())
  expect((await fetch(`${url}/publish/demo`, { method: 'POST', body: 'hello' })).status).toBe(201)
  let read = ''
  for await (const part of text ?? []) {
    read += part
    if (read.includes('data: hello')) break
  }
  const page = await fetch(url)
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Rejoin')])
  // The signal goes to npm alone, and the program ends with it.
  await program.stop()
  await expect.poll(() => fetch(`${url}/healthz`).then(Boolean, () => false)).toBe(false)
}, 120_000)

test('in a fresh clone, npm pack builds the package that it packs', async () => {
  const clone = freshClone()
  await run('npm', ['pack', '--workspace=packages/client'], { cwd: clone })
  const { stdout } = await run('tar', ['-tf', `rejoin-client-${version}.tgz`], { cwd: clone })
  expect(stdout.split('\n')).toEqual(expect.arrayContaining(['package/dist/index.js', 'package/dist/standalone.js']))
})

/** What git would give somebody, with the packages that `npm install` would: ours are the clone's own. */
function freshClone(): string {
  const clone = mkdtempSync(join(tmpdir(), 'rejoin-clone-'))
  onTestFinished(() => rmSync(clone, { recursive: true, force: true }))
  for (const file of trackedFiles()) {
    mkdirSync(dirname(join(clone, file)), { recursive: true })
    cpSync(join(root, file), join(clone, file))
  }
  const modules = join(clone, 'node_modules')
  mkdirSync(join(modules, '@rejoin'), { recursive: true })
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (name !== '@rejoin' && name !== 'rejoin') symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  for (const folder of packageFolders) {
    const name = folder === 'rejoin' ? 'rejoin' : `@rejoin/${folder}`
    symlinkSync(join(clone, 'packages', folder), join(modules, name))
  }
  return clone
}
