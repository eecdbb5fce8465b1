import { expect, test, vi } from 'vitest'
import { message } from './support/scripted-server.ts'
import { page, server, start, useStage } from './support/stage.ts'

useStage()

test('the sixth stream of a page on HTTP/1.1 is warned of in development, once, with the ways out', async () => {
  page()
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  for (let count = 1; count <= 5; count += 1) await open()
  expect(warn).not.toHaveBeenCalled()
  await open()
  await vi.waitFor(() => expect(warn).toHaveBeenCalledOnce())
  expect(warn.mock.calls[0]?.[0]).toMatch(/6 streams of 127\.0\.0\.1:\d+.*HTTP\/2.*shareAcrossTabs.*pauseWhenHidden/)
  await open()
  expect(warn).toHaveBeenCalledOnce()
})

test('streams that were closed do not count', async () => {
  page()
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  for (let count = 1; count <= 8; count += 1) (await open()).close()
  expect(warn).not.toHaveBeenCalled()
})

test('a program that is no page is told nothing: it has no such limit', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  for (let count = 1; count <= 7; count += 1) await open()
  expect(warn).not.toHaveBeenCalled()
})

/** A stream that is connected, and counted. */
async function open() {
  const { stream, events } = start()
  const visit = await server.stream()
  visit.send(...message('e1'))
  await events.until(1)
  await import('../src/stream-count.ts')
  await new Promise((resolve) => setImmediate(resolve))
  return stream
}
