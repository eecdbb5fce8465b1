import * as hub from '@rejoin/hub'
import { createHub, RejoinError, uuidv7 } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { expect, onTestFinished, test } from 'vitest'

test('a program catches errors and chooses ids with @rejoin/hub alone', async () => {
  const own = await createHub({ log: memoryLog({ codec: uuidv7() }) })
  onTestFinished(() => own.close())
  expect((await own.publish('a', { data: 1 })).id).toMatch(/^[0-9a-f-]{36}$/)
  await expect(own.publish('../a', { data: 1 })).rejects.toBeInstanceOf(RejoinError)
  expect(['hlc', 'sequence', 'snowflake', 'ulid', 'uuidv7'].filter((codec) => !(codec in hub))).toEqual([])
})
