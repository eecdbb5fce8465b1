import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { readText } from '../support/repository.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('systemd takes the unit that we ship, without a warning', async () => {
  const { folder, remove } = temporaryFolder()
  onTestFinished(remove)
  const file = join(folder, 'rejoin.service')
  // Where the program is installed depends on the machine; systemd wants it to be there.
  writeFileSync(file, readText('deploy/systemd/rejoin.service').replace('/usr/bin/rejoin', process.execPath))
  const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', '--man=no', file])
  expect(stdout + stderr).toBe('')
})
