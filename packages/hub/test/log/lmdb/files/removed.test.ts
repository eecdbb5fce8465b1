import { copyFileSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { expect, onTestFinished, test } from 'vitest'
import { lmdbWorkbench, publish } from '../workbench.ts'

const ways: Record<string, (folder: string) => void> = {
  'whose folder is removed': (folder) => rmSync(folder, { recursive: true }),
  'whose folder is moved': (folder) => renameSync(folder, `${folder}-moved`),
  'whose file is removed': (folder) => unlinkSync(join(folder, 'data.mdb')),
  'whose file is replaced by a copy': (folder) => {
    copyFileSync(join(folder, 'data.mdb'), join(folder, 'copy'))
    renameSync(join(folder, 'copy'), join(folder, 'data.mdb'))
  },
  'whose lock is removed, so that another writer could start': (folder) => unlinkSync(join(folder, 'writer.sock')),
}

test.skipIf(process.platform === 'win32').each(Object.entries(ways))(
  'a log %s acknowledges nothing more, and says why',
  async (_, remove) => {
    const { open, folder } = lmdbWorkbench()
    const log = await open()
    await publish(log, 'a', '1')
    expect(log.fault?.()).toBeUndefined()
    remove(folder())
    const rejection = { code: 'log-unavailable', message: expect.stringContaining('removed or replaced') }
    await expect(publish(log, 'a', '2')).rejects.toMatchObject(rejection)
    await expect(log.invalidate('a')).rejects.toMatchObject(rejection)
    await expect(log.probe()).rejects.toMatchObject(rejection)
    expect(log.fault?.()).toMatchObject(rejection)
  },
)

test.skipIf(process.platform === 'win32')(
  'a publish that is under way when the file goes is not acknowledged',
  async () => {
    const { open, folder } = lmdbWorkbench()
    const log = await open()
    const answers = Array.from({ length: 50 }, (_, index) => publish(log, 'a', `${index}`))
    // The commit begins with the end of this turn.
    setImmediate(() => rmSync(folder(), { recursive: true }))
    for (const { status } of await Promise.allSettled(answers)) expect(status).toBe('rejected')
  },
)

test.skipIf(process.platform === 'win32')(
  'a hub whose log is removed tells its operator within a second, without a publish',
  async () => {
    const { folder, environment } = lmdbWorkbench()
    const hub = await createHub({ log: lmdbLog(folder()), environment })
    onTestFinished(() => hub.close())
    const told: unknown[] = []
    hub.on('silence', (observation) => told.push(observation))
    await environment.advance(2000)
    expect(told).toEqual([])
    rmSync(folder(), { recursive: true })
    await environment.advance(1000)
    expect(told).toMatchObject([{ cause: { code: 'log-unavailable' } }])
    await expect(hub.admin.probe()).rejects.toMatchObject({ code: 'log-unavailable' })
  },
)
