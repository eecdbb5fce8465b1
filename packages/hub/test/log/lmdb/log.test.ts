import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { lmdbLog, restoreLmdb } from '@rejoin/hub/lmdb'
import { logContract } from '@rejoin/hub/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../../../test/support/temporary-folder.ts'

describe('lmdb log', () => {
  const { folder, remove } = temporaryFolder()
  afterAll(remove)

  logContract({
    test,
    source: ({ location, ...options }) => lmdbLog(join(folder, location), options),
    async rollBack(location, log) {
      const [place, copy] = [join(folder, location), join(folder, `copy of ${location}`)]
      await log.backup?.(copy)
      return async () => {
        await log.close()
        rmSync(place, { recursive: true })
        await restoreLmdb(copy, place)
        return 'reopen'
      }
    },
    differs: [
      {
        reason: 'nothing in a copy tells which channels had events after it was made',
        tests: ['a channel that lost nothing has no mark'],
      },
      {
        reason: 'a restart loses nothing, so there is nothing to tell apart',
        tests: ['an id from before everything was lost is told from one of today'],
      },
      {
        reason: 'it is called, not sent a command: nothing stands between that could send it twice',
        tests: ['a token it has seen is answered with the positions of then, and appends nothing'],
      },
    ],
  })
})

test.each([{ path: 'x' }, '', undefined])('lmdbLog(%j) says that the folder comes first', (folder) => {
  expect(() => lmdbLog(folder as string)).toThrow(
    expect.objectContaining({ code: 'invalid-option', message: expect.stringContaining("lmdbLog('./data', { … })") }),
  )
})
