import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connect } from '@rejoin/client'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../support/program.ts'
import { freePort } from '../support/proxies/proxy.ts'
import { readText } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test.each([
  ['for one hub', 'rejoin.service', 'rejoin.service'],
  ['for two hubs', 'rejoin@.service', 'rejoin@4747.service'],
])('systemd takes the unit that we ship %s, without a warning', async (_hubs, shipped, instance) => {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const file = join(folder, instance)
  // Where the program is installed depends on the machine; systemd wants it to be there.
  writeFileSync(file, readText(`deploy/systemd/${shipped}`).replace('/usr/bin/rejoin', process.execPath))
  const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file])
  expect(stdout + stderr).toBe('')
})

test.each(['rejoin.service', 'rejoin@.service'])(
  '%s is started again for as long as it takes, when its port or its Redis is not free yet',
  (shipped) => {
    const unit = readText(`deploy/systemd/${shipped}`)
    expect(unit).toMatch(/^Restart=always$/m)
    // By default systemd gives up for good after five starts within ten seconds.
    expect(unit).toMatch(/^\[Unit\][^[]*^StartLimitIntervalSec=0$/m)
  },
)

test('a restart of the unit ends within its time while streams are open, and the next process has the log and the readers', async () => {
  const [, stopSeconds] = /^TimeoutStopSec=(\d+)$/m.exec(readText('deploy/systemd/rejoin.service')) ?? []
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const port = await freePort()
  const start = () => startProgram({ directory: folder, port })
  let hub = await start()
  onTestFinished(async () => void (await hub.kill()))
  const url = `http://127.0.0.1:${port}`
  const streams = Array.from({ length: 50 }, () => connect(`${url}/events/demo`))
  onTestFinished(() => {
    for (const stream of streams) stream.close()
  })
  const got = streams.map((stream) => {
    const data: unknown[] = []
    stream.on('message', (event) => data.push(event.data))
    return data
  })
  const publish = async (data: string) =>
    expect((await fetch(`${url}/publish/demo`, { method: 'POST', body: data })).status).toBe(201)
  await expect.poll(() => streams.every(({ state }) => state.state === 'connected')).toBe(true)
  await publish('before')
  const since = performance.now()
  expect((await hub.stop()).code).toBe(0)
  expect(performance.now() - since).toBeLessThan(Number(stopSeconds) * 1000)
  // systemd starts the next process when the last one has ended.
  hub = await start()
  await publish('after')
  await expect.poll(() => got.every((data) => String(data) === 'before,after')).toBe(true)
})
