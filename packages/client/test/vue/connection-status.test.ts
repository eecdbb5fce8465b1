import { expect, test, vi } from 'vitest'
import { createApp } from 'vue'
import { ConnectionStatus } from '../../src/vue/index.ts'
import { mounted, newRoot, useDocument } from '../support/document.ts'
import { hello } from '../support/scripted-server.ts'
import { server, start, useStage } from '../support/stage.ts'

useStage()
useDocument()

test('the states of a stream, and a button that opens it again after a login', async () => {
  let signIns = 0
  const app = createApp(ConnectionStatus, { source: server.url, onSignIn: () => void signIns++ })
  const element = newRoot()
  app.mount(element)
  mounted.push(app)
  const status = () => element.querySelector('.rejoin-status')?.getAttribute('data-status')
  expect(status()).toBe('connecting')
  const visit = await server.stream()
  visit.send(...hello())
  await expect.poll(status).toBe('live')
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
  element.querySelector('button')?.click()
  ;(await server.stream()).send(...hello())
  await expect.poll(status).toBe('live')
  expect(signIns).toBe(1)
})

test('a token function that fails shows that, and a sign-in that fails is reported and changes nothing', async () => {
  const error = vi.spyOn(console, 'error').mockReturnValue()
  const { stream } = start({
    token() {
      throw new Error('The session is over.')
    },
  })
  const onSignIn = () => Promise.reject(new Error('cancelled'))
  const app = createApp(ConnectionStatus, { source: stream, onSignIn })
  const element = newRoot()
  app.mount(element)
  mounted.push(app)
  const status = () => element.querySelector('.rejoin-status')?.getAttribute('data-status')
  await expect.poll(status).toBe('signInFailed')
  const button = element.querySelector('button')
  expect(button?.textContent).toBe('Sign in')
  const { attempt } = stream.state
  button?.click()
  await expect.poll(() => error.mock.calls.map(([it]) => (it as Error).message)).toContain('cancelled')
  expect(status()).toBe('signInFailed')
  expect(stream.state.attempt).toBe(attempt)
})
