import { join } from 'node:path'
import { lmdbLog } from '@rejoin/hub/lmdb'
import { logContract } from '@rejoin/hub/testing'
import { afterAll, describe, test } from 'vitest'
import { temporaryFolder } from './temporary-folder.ts'

describe('lmdb log', () => {
  const { folder, remove } = temporaryFolder()
  afterAll(remove)

  logContract({
    test,
    source: ({ place, ...options }) => lmdbLog(join(folder, place), options),
    differs: [
      {
        reason: 'a restart loses nothing, so there is nothing to tell apart',
        tests: ['an id from before everything was lost is told from one of today'],
      },
      {
        reason: 'it is called, not sent a command: nothing stands between that could send it twice',
        tests: ['a token it has seen is answered with the places of then, and appends nothing'],
      },
    ],
  })
})
