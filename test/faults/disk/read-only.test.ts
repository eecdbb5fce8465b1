import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../../support/program.ts'
import { openLastingHub } from '../hubs/lasting-hub.ts'
import { canBreakDisks, mountBreakingDisk } from './breaking-disk.ts'

// Registered where a disk can be made to break: elsewhere there is nothing to try it on.
if (canBreakDisks()) {
  test('a disk that turns read-only under rejoin serve rejects publishes with the reason, is read from, and loses nothing', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rejoin-read-only-'))
    const disk = mountBreakingDisk(folder, 64)
    onTestFinished(() => {
      disk.unmount()
      rmSync(folder, { recursive: true })
    })
    const directory = join(disk.path, 'log')
    const hub = await openLastingHub({ random: () => 0.5, start: (port) => startProgram({ directory, port }) })
    onTestFinished(() => hub.abandon())
    const publish = (channel: string) => fetch(`${hub.origin}/publish/${channel}`, { method: 'POST', body: channel })
    for (const channel of ['a/1', 'a/2', 'a/3']) expect((await publish(channel)).status).toBe(201)

    disk.breakDown()
    // Each to another channel, so that pages are written one by one as well as together.
    for (let n = 4; n < 60; n += 1) {
      const response = await publish(`a/${n}`)
      expect([response.status, await response.text()]).toEqual([503, expect.stringContaining('is read-only')])
    }
    expect((await fetch(`${hub.origin}/readyz`)).status).toBe(503)
    expect(await readAll(hub.origin)).toEqual(['a/1', 'a/2', 'a/3'])

    await hub.kill()
    disk.repair()
    await hub.start()
    expect(await readAll(hub.origin)).toEqual(['a/1', 'a/2', 'a/3'])
    expect((await publish('a/4')).status).toBe(201)
    await hub.stop()
  }, 60_000)
}

async function readAll(origin: string): Promise<string[]> {
  const response = await fetch(`${origin}/poll/a/*?lastEventId=earliest&waitMs=0`)
  const { events } = (await response.json()) as { events: { type: string; data: string }[] }
  return events.filter(({ type }) => type === 'message').map(({ data }) => data)
}
