import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub } from '@rejoin/hub'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { expect, onTestFinished, test } from 'vitest'
import { comesBack, overAll } from '../../support/every-way.ts'

test.each(['put back', 'used beside the original'])(
  'a copy of the folder that is %s tells every reader of what it lacks, by every way, and nobody else (§2.3)',
  async (how) => {
    const folder = mkdtempSync(join(tmpdir(), 'rejoin-copies-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const [original, copy] = [join(folder, 'original'), join(folder, 'copy')]
    const before = await createHub({ log: lmdbLog(original) })
    const { id: kept } = await before.publish('a', { text: 'kept' })
    await before.close()
    cpSync(original, copy, { recursive: true })
    const during = await createHub({ log: lmdbLog(original) })
    const { id: lost } = await during.publish('a', { text: 'lost' })
    await during.close()
    if (how === 'put back') {
      rmSync(original, { recursive: true })
      cpSync(copy, original, { recursive: true })
    }
    const hub = await createHub({ log: lmdbLog(how === 'put back' ? original : copy) })
    onTestFinished(() => hub.close())
    expect(await comesBack(hub, 'a', lost)).toEqual(overAll(['epoch']))
    await hub.publish('a', { text: 'new' })
    expect(await comesBack(hub, 'a', lost)).toEqual(overAll(['epoch']))
    expect(await comesBack(hub, 'a', kept)).toEqual(overAll(['new']))
    expect(await comesBack(hub, '*', kept)).toEqual(overAll(['new']))
  },
)
