import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '@rejoin/hub/log'
import type { Position } from '@rejoin/protocol'
import { expect, test } from 'vitest'
import { lmdbWorkbench, publish, readOn } from '../workbench.ts'

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

test('a writer that ends in time lets the next one in, with everything that it wrote', async () => {
  const { open } = lmdbWorkbench()
  const before = await open()
  const [start] = await publish(before, 'a', '1')
  let next: Promise<Log> | undefined
  const warning = await new Promise<string>((onWarning) => {
    next = open({ lockTimeoutMs: 60_000, onWarning })
  })
  expect(warning).toMatch(/^Another process writes to the log in .+ Waiting for it to end\.$/)
  await publish(before, 'a', '2')
  await before.close()
  const after = (await next) as Log
  expect((await readOn(after, 'a', start as Position)).texts).toEqual(['2'])
  expect(await publish(after, 'a', '3')).toHaveLength(1)
})

test('a writer that goes on is waited for no longer than was said', async () => {
  const { open } = lmdbWorkbench()
  const log = await open()
  const begun = performance.now()
  await expect(open({ lockTimeoutMs: 300, onWarning: () => undefined })).rejects.toMatchObject({
    code: 'log-unavailable',
    retryable: true,
    message: expect.stringContaining('It was waited for 300 ms. End it'),
  })
  expect(performance.now() - begun).toBeGreaterThanOrEqual(300)
  expect(await publish(log, 'a', '1')).toHaveLength(1)
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
