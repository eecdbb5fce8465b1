import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lmdbWorkbench, publish } from './workbench.ts'

test('a second writer is rejected, with advice, and the first goes on', async () => {
  const { open } = lmdbWorkbench()
  const log = await open()
  await expect(open()).rejects.toMatchObject({
    code: 'log-unavailable',
    message: expect.stringMatching(/Another process writes to the log in .+ End it, or choose another folder/),
  })
  expect(await publish(log, 'a', '1')).toHaveLength(1)
  await log.close()
  await open()
})

test('what a killed writer leaves behind does not keep the next one out', async () => {
  const { open, folder } = lmdbWorkbench()
  mkdirSync(folder(), { recursive: true })
  const path = join(folder(), 'writer.sock')
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.stdout.write('listens'))`
  const dead = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(dead.stdout, 'data')
  await expect(open()).rejects.toMatchObject({ code: 'log-unavailable' })
  dead.kill('SIGKILL')
  await once(dead, 'exit')
  expect(existsSync(path)).toBe(true)
  const starters = await Promise.allSettled([open(), open(), open()])
  expect(starters.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected'])
})

test('a folder whose path is longer than a socket’s may be is fine', async () => {
  const { open } = lmdbWorkbench()
  const log = await open({}, 'long/'.repeat(30))
  expect(await publish(log, 'a', '1')).toHaveLength(1)
})
