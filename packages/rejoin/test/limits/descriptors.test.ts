import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createHub } from '@rejoin/hub'
import { memoryLog } from '@rejoin/hub/memory'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connectionRoom, readerRoom } from '../../src/limits/reader-room.ts'
import { watchFigures } from '../../src/monitoring/figures.ts'

test.each([
  ['Max open files            20000                20000                files     ', 19_872],
  ['Max open files            1024                 524288               files     ', 896],
  ['Max open files            100                  100                  files     ', 50],
  ['Max open files            unlimited            unlimited            files     ', undefined],
  ['Max processes             100                  100                  processes ', undefined],
])('of %j, connections get %s', (line, room) => {
  const folder = mkdtempSync(join(tmpdir(), 'rejoin-limits-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'limits')
  writeFileSync(file, `Limit                     Soft Limit           Hard Limit           Units     \n${line}\n`)
  expect(connectionRoom(file)).toBe(room)
})

test.each([
  [19_872, 19_616],
  [896, 784],
  [50, 43],
])('of %s connections, readers get %s', (connections, readers) => {
  expect(readerRoom(connections)).toBe(readers)
})

test('where the system does not tell, connections are not limited', () => {
  expect(connectionRoom('/nowhere/limits')).toBeUndefined()
})

test('the dashboard goes on with the last figure while the system cannot tell how much memory there is', async () => {
  const hub = await createHub({ log: memoryLog() })
  onTestFinished(() => hub.close())
  const told = { nodes: [], budget: null, state: { draining: false, maintenance: false } }
  const { take } = watchFigures(hub, '1')
  const { rssBytes } = take(0, told).process
  const asked = vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory')
  })
  onTestFinished(() => asked.mockRestore())
  expect(take(0, told).process.rssBytes).toBe(rssBytes)
  expect(rssBytes).toBeGreaterThan(0)
})
