import { expect, test, vi } from 'vitest'
import { RejoinStatus } from '../../src/element/index.ts'
import { mounted, newRoot, useDocument } from '../support/document.ts'
import { hello } from '../support/scripted-server.ts'
import { deferred, server, start, useStage } from '../support/stage.ts'

useStage()
useDocument()

function place(): RejoinStatus {
  const root = newRoot()
  root.innerHTML = `<rejoin-status src="${server.url}"></rejoin-status>`
  mounted.push({ unmount: () => root.remove() })
  return root.firstElementChild as RejoinStatus
}

test('the states of a stream, in a page without a framework', async () => {
  const element = place()
  expect(element).toBeInstanceOf(RejoinStatus)
  expect(element.dataset.status).toBe('connecting')
  const visit = await server.stream()
  visit.send(...hello())
  await expect.poll(() => element.dataset.status).toBe('live')
  expect(element.querySelector('.rejoin-status-dot')?.getAttribute('aria-label')).toBe('Live')
  visit.cut()
  ;(await server.visit()).answer(503, { 'retry-after': '60' })
  const text = () => element.querySelector('.rejoin-status-text')?.textContent
  await expect.poll(text).toMatch(/^The server is busy\. Next attempt in \d\d s…$/)
  const button = element.querySelector('button')
  button?.focus()
  button?.click()
  const next = await server.visit()
  await expect.poll(text).toBe('Reconnecting…')
  expect(document.activeElement).toBe(button)
  next.answer(401)
  await expect.poll(text).toBe('Signed out')
  expect(document.activeElement).toBe(button)
  button?.click()
  const last = await server.stream()
  last.send(...hello())
  await expect.poll(() => element.dataset.status).toBe('live')
  element.remove()
  await last.gone
})

test('a login can take its time before the stream goes on', async () => {
  const element = place()
  const login = deferred()
  const asked = deferred()
  element.addEventListener('sign-in', (event) => {
    ;(event as CustomEvent<{ wait(promise: unknown): void }>).detail.wait(login.promise)
    asked.resolve()
  })
  ;(await server.visit()).answer(401)
  await expect.poll(() => element.dataset.status).toBe('signedOut')
  element.querySelector('button')?.click()
  await asked.promise
  expect(server.visits()).toBe(1)
  login.resolve()
  ;(await server.stream()).send(...hello())
  await expect.poll(() => element.dataset.status).toBe('live')
})

test('a token function that fails shows that, and a sign-in lets the stream go on', async () => {
  vi.spyOn(console, 'error').mockReturnValue()
  let token: string | undefined
  const { stream } = start({
    token() {
      if (!token) throw new Error('The session is over.')
      return token
    },
  })
  const element = place()
  element.source = stream
  element.addEventListener('sign-in', () => {
    token = 'new'
  })
  await expect.poll(() => element.dataset.status).toBe('signInFailed')
  const button = element.querySelector('button')
  expect(button?.textContent).toBe('Sign in')
  button?.click()
  const visit = await server.stream()
  expect(visit.headers.authorization).toBe('Bearer new')
  visit.send(...hello())
  await expect.poll(() => element.dataset.status).toBe('live')
})

test('another source replaces the first, and words can be replaced', async () => {
  const element = place()
  const visit = await server.stream()
  element.words = { connecting: 'Verbinde …' }
  element.setAttribute('src', `${server.url}?second`)
  expect(element.textContent).toContain('Verbinde …')
  const next = await server.stream()
  expect(next.url.searchParams.has('second')).toBe(true)
  await visit.gone
})
