import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { memoryHistory } from '../history/history.ts'
import { startHub } from './hub-process.ts'

test('a hub process that stood still while its parent left still ends in order', async () => {
  const hub = await startHub(memoryHistory(), {})
  hub.pause()
  await vi.waitUntil(() => /^State:\s+T/m.test(readFileSync(`/proc/${hub.pid}/status`, 'utf8')))
  // Its report of memory, one each second, is overdue when it wakes up, and comes before it hears that the channel is closed.
  await wait(1_200)
  const ended = hub.stop()
  hub.resume()
  expect(await ended).toMatchObject({ code: 0, signal: null })
})
