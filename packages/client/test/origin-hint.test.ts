import { expect, test, vi } from 'vitest'
import { message } from './support/scripted-server.ts'
import { server, start, useStage } from './support/stage.ts'

useStage()

const pageOf = (origin: string) => vi.stubGlobal('location', { origin, href: `${origin}/` })
const unreadable = () => Promise.reject(new TypeError('Failed to fetch'))

test('a page whose origin the hub may not list is told so in development, once, with what to do', async () => {
  pageOf('https://app.example')
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  const { stream } = start({ fetch: unreadable, maxRetries: 5, retryMs: 0 })
  await vi.waitFor(() => expect(stream.getSnapshot().attempt).toBeGreaterThan(0))
  await vi.waitFor(() => expect(warn).toHaveBeenCalledOnce())
  expect(warn.mock.calls[0]?.[0]).toMatch(
    /may not list .* --cors-origin https:\/\/app\.example, or add .* access\.cors/,
  )
})

test('a page of the hub’s own origin is told nothing', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  pageOf(new URL(server.url).origin)
  const { stream } = start({ fetch: unreadable })
  await loaded()
  expect(stream.getSnapshot().state).toBe('backoff')
  expect(warn).not.toHaveBeenCalled()
})

test('a page that was connected is told nothing when its connection is lost', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  pageOf('https://app.example')
  const { stream, events } = start()
  const visit = await server.stream()
  visit.send(...message('e1'))
  await events.until(1)
  await loaded()
  visit.cut()
  await vi.waitFor(() => expect(stream.getSnapshot().state).toBe('backoff'))
  expect(warn).not.toHaveBeenCalled()
})

test('a page whose own token function fails is told nothing of origins: no request was sent', async () => {
  const warn = vi.spyOn(console, 'warn').mockReturnValue()
  const failed = vi.fn()
  vi.stubGlobal('reportError', failed)
  pageOf('https://app.example')
  const token = () => Promise.reject(new Error('signed out'))
  const { stream } = start({ fetch: unreadable, token, maxRetries: 5, retryMs: 0 })
  await vi.waitFor(() => expect(stream.getSnapshot().attempt).toBeGreaterThan(0))
  await loaded()
  expect(failed).toHaveBeenCalledWith(expect.objectContaining({ message: 'signed out' }))
  expect(warn).not.toHaveBeenCalled()
})

/** The hint is at work: it was asked for before this, and told of the state in a microtask. */
async function loaded(): Promise<void> {
  await import('../src/origin-hint.ts')
  await new Promise((resolve) => setImmediate(resolve))
}
