import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from './program.ts'
import { packageFolders, root, trackedFiles } from './repository.ts'

test('in a fresh clone, npm start builds what it needs and serves, and what the README says to try works', async () => {
  const clone = freshClone()
  const program = startProgram('npm', ['start', '--', '--port', '0'], clone)
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
    const name = folder === 'server' ? 'rejoin' : `@rejoin/${folder}`
    symlinkSync(join(clone, 'packages', folder), join(modules, name))
  }
  return clone
}
