import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { beforeEach, describe, expect, test } from 'vitest'
import { version } from '../../src/version.ts'
import { run } from '../fake-process.ts'

let data: string

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'rejoin-migrate-'))
  return () => rmSync(data, { recursive: true, force: true })
})

describe('migrate', () => {
  test('says that a log of this version has its format, and leaves its events as they are', async () => {
    const before = await createHub({ log: lmdbLog(data) })
    const { id } = await before.publish('orders/42', { data: 1 })
    await before.close()
    const { stdout, exitCode } = await run(['migrate', '--data', data])
    const says = `The log in ${data} has the format of Rejoin ${version}. Nothing is to be migrated.\n`
    expect([stdout, exitCode]).toEqual([says, 0])
    const after = await createHub({ log: lmdbLog(data) })
    expect(await after.window('orders/42')).toMatchObject({ events: 1, newest: id })
    await after.close()
  })

  test('says so in JSON as well', async () => {
    const { stdout } = await run(['migrate', '--json'], { env: { REJOIN_DATA: data } })
    expect(JSON.parse(stdout)).toEqual({ log: 'lmdb', place: data, found: false, migrated: false, version })
  })

  test('makes no log where there is none', async () => {
    const folder = join(data, 'none')
    const { stdout, exitCode } = await run(['migrate', '--data', folder])
    expect([stdout, exitCode]).toEqual([`There is no log in ${folder} yet. Nothing is to be migrated.\n`, 0])
    expect(() => rmSync(folder, { recursive: true })).toThrow('ENOENT')
  })

  test('has nothing to do for a log in memory', async () => {
    const { stdout, exitCode } = await run(['migrate', '--log', 'memory'])
    expect([stdout, exitCode]).toEqual(['A log in memory ends with its hub. Nothing is to be migrated.\n', 0])
  })

  test('refuses what this version cannot open, and says what to do', async () => {
    writeFileSync(join(data, 'data.mdb'), 'something else')
    const { stderr, exitCode } = await run(['migrate', '--data', data])
    expect([stderr, exitCode]).toEqual([expect.stringContaining('is not a log of Rejoin'), 1])
    expect(stderr).toContain('choose another folder')
  })

  test('waits for no hub that uses the log: it says who has it, and that it may be tried later', async () => {
    const hub = await createHub({ log: lmdbLog(data) })
    const { stderr, exitCode } = await run(['migrate', '--data', data])
    expect([stderr, exitCode]).toEqual([expect.stringContaining(data), 4])
    await hub.close()
  })
})
