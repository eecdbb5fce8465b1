import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts'
import { run } from '../../support/fake-process.ts'

test('backup copies the log of the folder that the settings name, and restore puts the copy back', async () => {
  const { place } = await logWith('one')
  const env = { REJOIN_DATA: place('log') }
  const backup = await run(['backup', place('backup')], { env })
  expect(backup).toMatchObject({ exitCode: 0, stderr: '' })
  expect(backup.stdout).toContain(`${place('backup')} holds the log as it was, `)
  expect(backup.stdout).toContain(`rejoin restore ${place('backup')}`)

  const restore = await run(['restore', place('backup'), '--data', place('restored')], { env })
  expect(restore).toMatchObject({ exitCode: 0, stderr: '' })
  expect(restore.stdout).toContain('Readers that come back are told to reload.')
  const hub = await createHub({ log: lmdbLog(place('restored')) })
  onTestFinished(() => hub.close())
  expect(await hub.admin.window('demo')).toMatchObject({ events: 1 })
})

test('--json gives where the copy is and how large', async () => {
  const { place } = await logWith('one')
  const { stdout } = await run(['backup', place('backup'), '--data', place('log'), '--json'])
  expect(JSON.parse(stdout)).toEqual({ folder: place('backup'), bytes: expect.any(Number) })
})

test('on a terminal both show how far they are, and leave no trace of it', async () => {
  const { place } = await logWith('x'.repeat(200_000))
  const { stderr } = await run(['backup', place('backup'), '--data', place('log')], { isTTY: true })
  expect(stderr).toMatch(/\d+(\.\d)? [KM]iB of \d+(\.\d)? [KM]iB/)
  expect(stderr.endsWith('\r\u001b[K')).toBe(true)
})

test.each([
  [['backup', 'copy', '--data', 'nowhere'], 'There is no log in'],
  [['restore', 'nowhere', '--data', 'other'], 'There is no log in'],
])('%j says what is missing', async (args, words) => {
  const { stderr, exitCode } = await run(args)
  expect(exitCode).toBe(1)
  expect(stderr).toContain(words)
})

test.each([
  ['the copy would be', ['backup', 'afile']],
  ['the log would be', ['backup', 'copy', '--data', 'afile']],
  ['the restored log would be', ['restore', 'log', '--data', 'afile']],
  ['the backup would be', ['restore', 'afile', '--data', 'other']],
  ['a part of the path would be', ['backup', 'afile/copy']],
])('a file where %s a folder is named in a sentence, and stays as it is', async (_, args) => {
  const { place } = await logWith('one')
  writeFileSync(place('afile'), 'mine')
  const paths = args.map((arg) => (/^(afile|copy|log|other)/.test(arg) ? place(arg) : arg))
  const { stderr, exitCode } = await run(paths, { env: { REJOIN_DATA: place('log') } })
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/The path .*afile.* a file\. Name a folder, or a path where there is nothing yet\./)
  expect(readFileSync(place('afile'), 'utf8')).toBe('mine')
})

test('a folder that cannot be read is named in a sentence', async () => {
  const { place } = await logWith('one')
  symlinkSync(place('loop'), place('loop'))
  for (const args of [
    ['backup', place('loop'), '--data', place('log')],
    ['backup', place('copy'), '--data', place('loop')],
  ]) {
    const { stderr, exitCode } = await run(args)
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`The folder ${place('loop')} cannot be read: `)
  }
})

test.runIf(process.platform === 'linux')(
  'where no folder can be made, backup and serve end with a sentence',
  async () => {
    const { place } = await logWith('one')
    for (const args of [
      ['backup', '/proc/nope/copy', '--data', place('log')],
      ['serve', '--port', '0', '--data', '/proc/nope'],
    ]) {
      const { stderr, exitCode } = await run(args)
      expect(exitCode).toBe(1)
      expect(stderr).toContain('No folder can be made at /proc/nope: ')
    }
  },
)

test('of a log in Redis it says that Redis makes the backup, and shows no password', async () => {
  const env = { REJOIN_LOG: 'redis://:secret@127.0.0.1:6379' }
  const { stderr, exitCode } = await run(['backup', 'copy'], { env })
  expect(exitCode).toBe(1)
  expect(stderr).toContain('make the backup with Redis itself')
  expect(stderr).not.toContain('secret')
})

async function logWith(data: string) {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const place = (name: string) => join(folder, name)
  const hub = await createHub({ log: lmdbLog(place('log')) })
  await hub.publish('demo', { data })
  await hub.close()
  return { place }
}
