import { execFileSync } from 'node:child_process'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { createVirtualEnvironment } from '@rejoin/hub/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { temporaryFolder } from '../../../../../../test/support/temporary-folder.ts'
import { publish, readOn } from '../workbench.ts'

const canMount = process.platform === 'linux' && process.getuid?.() === 0

test.skipIf(!canMount)(
  'on a full disk publishes fail with the reason, readers read on, and it recovers with the space (needs root on Linux)',
  async () => {
    // What lmdb says of a write that failed; it must not come to that.
    const said = vi.spyOn(console, 'error')
    onTestFinished(() => said.mockRestore())
    const folder = tinyDisk('2m')
    const log = await lmdbLog(folder, { window: { maxEvents: 1e6 } }).open(createVirtualEnvironment())
    onTestFinished(() => log.close())
    const start = await log.head()
    const announced: string[] = []
    await log.tail(start, ({ events }) => void announced.push(...events.map((event) => event.data.slice(0, 8))))

    const answered: string[] = []
    const failure = await (async () => {
      for (let number = 0; number < 400; number += 1) {
        const text = `${number}`.padEnd(20_000)
        try {
          await publish(log, 'a', text)
          answered.push(text.slice(0, 8))
        } catch (error) {
          return error
        }
      }
      return undefined
    })()
    expect(failure).toMatchObject({
      code: 'log-unavailable',
      retryable: true,
      message: expect.stringContaining('the disk is full'),
    })
    const together = await Promise.allSettled(['b', 'c', 'd'].map((name) => publish(log, name, 'x'.repeat(20_000))))
    expect(together.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    const held = (await readOn(log, 'a', start)).texts.map((text) => text.slice(0, 8))
    expect(held).toEqual(answered)

    execFileSync('mount', ['-o', 'remount,size=8m', folder])
    await publish(log, 'a', 'back')
    const { texts, gaps } = await readOn(log, 'a', start)
    expect([texts.at(-1), texts.length, gaps]).toEqual(['back', answered.length + 1, []])
    expect(announced).toEqual([...answered, 'back'])
    expect(said).not.toHaveBeenCalled()
  },
)

test.skipIf(!canMount)('on a read-only disk it does not open, and says why (needs root on Linux)', async () => {
  const folder = tinyDisk('2m')
  execFileSync('mount', ['-o', 'remount,ro', folder])
  await expect(lmdbLog(folder).open(createVirtualEnvironment())).rejects.toMatchObject({
    code: 'log-unavailable',
    message: expect.stringContaining('read-only'),
  })
})

/** A file system of its own, in memory, that is as large as it is told to be. */
function tinyDisk(size: string): string {
  const { folder, remove } = temporaryFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder])
  onTestFinished(() => {
    execFileSync('umount', ['--lazy', folder])
    remove()
  })
  return folder
}
